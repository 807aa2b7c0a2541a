//! The sizes of a tile as constants: a kernel that is compiled for a size keeps its sums in registers.

use std::ops::Range;

/// Calls `this.tile::<ROWS, COLUMNS, …>(…)`, or `this.tile::<COUNT, …>(…)`, with the sizes that were counted, each one of those listed: for
/// instruction sets with registers for the larger tiles or for those without, where both are given. What is listed is compiled, so that nothing
/// should be that is never called. Other parameters of the kernel follow the sizes: `tile!(count, [4 2 1], add[_, _](simd, at))` if they are two types.
macro_rules! tile {
    ($simd:ty: $rows:expr, $r:tt or $few_r:tt x $columns:expr, $c:tt, $($call:tt)+) => {
        tile!($simd: $rows, $r or $few_r x $columns, $c or $c, $($call)+)
    };
    ($simd:ty: $rows:expr, $r:tt or $few_r:tt x $columns:expr, $c:tt or $few_c:tt, $($call:tt)+) => {
        if $crate::simd::has_many_registers::<$simd>() {
            tile!($rows, $r x $columns, $c, $($call)+)
        } else {
            tile!($rows, $few_r x $columns, $few_c, $($call)+)
        }
    };
    ($rows:expr, [$($r:literal)+] x $columns:expr, $c:tt, $this:ident . $tile:ident $more:tt $args:tt) => {
        match $rows {
            $( $r => tile!(@ ($this.$tile), ($r) x $columns, $c, $more $args), )+
            _ => unreachable!("tiles are cut to the sizes there are kernels for"),
        }
    };
    ($count:expr, $c:tt, $this:ident . $tile:ident $more:tt $args:tt) => {
        tile!(@ ($this.$tile), () x $count, $c, $more $args)
    };
    ($count:expr, $c:tt, $tile:ident $more:tt $args:tt) => {
        tile!(@ ($tile), () x $count, $c, $more $args)
    };
    (@ $tile:tt, $rows:tt x $columns:expr, [$($c:literal)+], $more:tt $args:tt) => {
        match $columns {
            $( $c => tile!(@ $tile $rows $c $more $args), )+
            _ => unreachable!("tiles are cut to the sizes there are kernels for"),
        }
    };
    (@ ($($tile:tt)+) ($($r:literal)?) $c:literal [$($more:ty),*] $args:tt) => {
        $($tile)+ ::<$($r,)? $c, $($more),*> $args
    };
}

pub(crate) use tile;

/// `total` shared out evenly over as few pieces of at most `most` as will do: 5 are 3 + 2, not 4 + 1. Each is (first, length).
///
/// An iterator and no closure: what a closure does may be compiled apart, without the wide instructions.
#[inline(always)]
pub(crate) fn evenly(total: usize, most: usize) -> Evenly {
    Evenly { first: 0, total, pieces: total.div_ceil(most) }
}

/// See [`evenly`].
pub(crate) struct Evenly {
    first: usize,
    total: usize,
    /// How many are left.
    pieces: usize,
}

impl Iterator for Evenly {
    type Item = (usize, usize);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, usize)> {
        if self.pieces == 0 {
            return None;
        }
        let (first, length) = (self.first, (self.total - self.first).div_ceil(self.pieces));
        self.first += length;
        self.pieces -= 1;
        Some((first, length))
    }
}

/// `total` cut into pieces of the first of these sizes that still fits, or of one. Each is (first, length).
#[inline(always)]
pub(crate) fn greedily<const N: usize>(total: usize, sizes: [usize; N]) -> Greedily<N> {
    Greedily { first: 0, total, sizes }
}

/// See [`greedily`].
#[derive(Clone)]
pub(crate) struct Greedily<const N: usize> {
    first: usize,
    total: usize,
    sizes: [usize; N],
}

impl<const N: usize> Iterator for Greedily<N> {
    type Item = (usize, usize);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, usize)> {
        let left = self.total - self.first;
        if left == 0 {
            return None;
        }
        let mut length = 1;
        for size in self.sizes {
            if left >= size {
                length = size;
                break;
            }
        }
        let first = self.first;
        self.first += length;
        Some((first, length))
    }
}

/// `total` cut into pieces of two sizes, the larger wherever it can be, so that as few as possible are left, which are pieces of one: 8 are
/// 4 + 4 with sizes 6 and 4, not 6 + 1 + 1. Each is (first, length).
#[inline(always)]
pub(crate) fn filling(total: usize, [large, small]: [usize; 2]) -> Filling {
    let mut smalls = 0;
    for count in 1..large {
        if count * small <= total && (total - count * small) % large < (total - smalls * small) % large {
            smalls = count;
        }
    }
    let rest = Greedily { first: smalls * small, total, sizes: [large] };
    Filling { smalls: 0..smalls, small, rest }
}

/// See [`filling`].
#[derive(Clone)]
pub(crate) struct Filling {
    /// Those of the smaller ones that are to come; they come first.
    smalls: Range<usize>,
    small: usize,
    rest: Greedily<1>,
}

impl Iterator for Filling {
    type Item = (usize, usize);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, usize)> {
        match self.smalls.next() {
            Some(before) => Some((before * self.small, self.small)),
            None => self.rest.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_all_and_have_sizes_there_are_kernels_for() {
        assert_eq!(evenly(5, 4).collect::<Vec<_>>(), [(0, 3), (3, 2)]);
        assert_eq!(evenly(8, 4).collect::<Vec<_>>(), [(0, 4), (4, 4)]);
        assert_eq!(evenly(0, 4).count(), 0);
        assert_eq!(greedily(11, [8, 2]).collect::<Vec<_>>(), [(0, 8), (8, 2), (10, 1)]);
        let lengths = |total| filling(total, [6, 4]).map(|(_, length)| length).collect::<Vec<_>>();
        assert_eq!(lengths(8), [4, 4]);
        assert_eq!(lengths(7), [6, 1]);
        assert_eq!(lengths(28), [4, 6, 6, 6, 6]);
        assert_eq!(filling(9, [6, 4]).collect::<Vec<_>>(), [(0, 4), (4, 4), (8, 1)]);
        assert_eq!(filling(3, [6, 4]).count(), 3);
    }
}
