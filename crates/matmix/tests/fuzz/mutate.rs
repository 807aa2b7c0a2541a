//! What is done to valid files: bits and bytes, lengths set to extremes, pieces lost, doubled and taken from others.

use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;

/// Numbers that readers stumble over.
const EXTREMES: [u64; 14] = [
    0,
    1,
    2,
    3,
    0x7f,
    0xff,
    0x100,
    0x7fff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0xffff_ffff_ffff_ffff,
];

/// One to four blows to one of the files.
pub(crate) fn mutated(seeds: &[Vec<u8>], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = seeds[rng.random_range(0..seeds.len())].clone();
    for _ in 0..rng.random_range(1..=4) {
        if bytes.is_empty() {
            break;
        }
        blow(&mut bytes, seeds, rng);
    }
    bytes
}

fn blow(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], rng: &mut ChaCha8Rng) {
    // The headers stand in front: half of the blows fall there.
    let end = if rng.random_bool(0.5) { bytes.len().min(160) } else { bytes.len() };
    let at = rng.random_range(0..end);
    let run = at..(at + rng.random_range(1..=16)).min(bytes.len());
    match rng.random_range(0..12) {
        0 | 1 => bytes[at] ^= 1 << rng.random_range(0..8),
        2 => bytes[at] = rng.next_u32() as u8,
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(run)),
        5 => {
            let again = bytes[run].to_vec();
            bytes.splice(at..at, again);
        }
        6 => bytes[run].fill(if rng.random_bool(0.5) { 0xff } else { 0 }),
        7 | 8 => {
            // A length, in either byte order and of any width, at the ends of its range or near that of the file.
            let number = match rng.random_range(0..3) {
                0 => bytes.len() as u64 + rng.random_range(0..3) - 1,
                _ => EXTREMES[rng.random_range(0..EXTREMES.len())],
            };
            let width = [1, 2, 4, 8][rng.random_range(0..4)].min(bytes.len() - at);
            let big = number.to_be_bytes();
            let number = if rng.random_bool(0.5) {
                big[8 - width..].to_vec()
            } else {
                number.to_le_bytes()[..width].to_vec()
            };
            bytes[at..at + width].copy_from_slice(&number);
        }
        9 => {
            // A number that is written out.
            let digit = bytes[at..].iter().position(u8::is_ascii_digit);
            let Some(from) = digit.map(|digit| at + digit) else { return };
            let length = bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
            let number = EXTREMES[rng.random_range(0..EXTREMES.len())].to_string();
            bytes.splice(from..from + length, number.into_bytes());
        }
        10 => {
            let other = &seeds[rng.random_range(0..seeds.len())];
            let from = rng.random_range(0..=other.len());
            bytes.truncate(at);
            bytes.extend(&other[from..]);
        }
        _ => {
            let other = &seeds[rng.random_range(0..seeds.len())];
            if !other.is_empty() {
                let from = rng.random_range(0..other.len());
                let piece = other[from..(from + 32).min(other.len())].to_vec();
                bytes.splice(run, piece);
            }
        }
    }
}
