use matmix::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let k: usize = args.get(1).map_or(10, |s| s.parse().unwrap());
    let iters: usize = args.get(2).map_or(30, |s| s.parse().unwrap());
    let x = Samples::from_npy("/tmp/digits.npy").unwrap().scaled(1.0 / 255.0).unwrap();
    let mut sum = 0.0;
    for seed in 0..10 {
        let t = std::time::Instant::now();
        let f = fit(
            &x,
            &FitOptions {
                components: k,
                rank: vec![4, 4],
                max_iter: iters,
                tol: 0.0,
                seed,
                ..Default::default()
            },
        )
        .unwrap();
        let drop = f.history.log_likelihood.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min);
        println!(
            "seed {seed} start {:.3} ll {:.3} e {:.4} min step {:.2e} {:?} {:?}",
            f.history.log_likelihood[0],
            f.log_likelihood(),
            f.reconstruction_error(),
            drop,
            f.history.events,
            t.elapsed()
        );
        sum += f.log_likelihood();
    }
    println!("mean {}", sum / 10.0);
}
