"""One EM iteration with joint sums written by hand in PyTorch, on the GPU: what `make bench-cuda` puts beside matmix.

Everything is a dense product: y = x · (L ⊗ R) for all components at once, densities, responsibilities, and
F = Σ γ (x − M) ⊗ q per component from the samples it is the best of. Single precision without TF32, as matmix.
"""

import math

import torch


def model(side, rank, k, device):
    g = torch.Generator(device="cpu").manual_seed(1)
    left = torch.linalg.qr(torch.randn(k, side, rank, generator=g))[0]
    right = torch.linalg.qr(torch.randn(k, side, rank, generator=g))[0]
    scale = torch.linspace(1.5, 0.5, rank).sqrt()
    loadings = torch.einsum("kai,kbj->kabij", left * scale, right * scale).reshape(k, side * side, rank * rank)
    means = 0.3 * torch.randn(k, side * side, generator=g)
    return loadings.to(device), means.to(device)


def samples(loadings, means, n):
    k, size, rho = loadings.shape
    z = torch.randint(k, (n,), device=means.device)
    x = means[z] + 0.22 * torch.randn(n, size, device=means.device)
    for c in range(k):
        own = z == c
        x[own] += torch.randn(int(own.sum()), rho, device=means.device) @ loadings[c].T
    return x


def iteration(x, loadings, means, noise=0.05):
    k, size, rho = loadings.shape
    s = (loadings**2).sum(1)
    flat = loadings.permute(1, 0, 2).reshape(size, k * rho)
    y = (x @ flat).reshape(-1, k, rho) - torch.einsum("kp,kpr->kr", means, loadings)
    distance = (x * x).sum(1, keepdim=True) + (means * means).sum(1) - 2 * (x @ means.T)
    q = y / (s + noise)
    delta = (distance - (y * q).sum(2)) / noise
    logs = -0.5 * (size * math.log(2 * math.pi) + (size - rho) * math.log(noise) + (s + noise).log().sum(1) + delta)
    gamma = torch.softmax(logs, 1)
    best = gamma.argmax(1)
    sums = []
    for c in range(k):
        own = (best == c).nonzero()[:, 0]
        xc, qc = x[own] - means[c], q[own, c] * gamma[own, c, None]
        sums.append((qc.T @ xc, qc.T @ q[own, c], xc.sum(0)))
    return torch.logsumexp(logs, 1).sum(), sums


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    device = "cuda"
    for n, side, rank, k in [(60_000, 28, 4, 10), (200_000, 64, 8, 10), (60_000, 28, 4, 200)]:
        loadings, means = model(side, rank, k, device)
        x = samples(loadings, means, n)
        for _ in range(3):
            iteration(x, loadings, means)
        took = []
        for _ in range(10):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            iteration(x, loadings, means)
            end.record()
            torch.cuda.synchronize()
            took.append(begin.elapsed_time(end))
        took.sort()
        print(f"PyTorch, joint sums by hand: {n} x {side}x{side} K={k} {rank}x{rank}: {took[5]:.2f} ms", flush=True)
        del x


if __name__ == "__main__":
    main()
