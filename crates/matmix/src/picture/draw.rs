//! Dots, lines and discs on a picture; what lies beyond its edge is left out.

use super::image::Image;

impl Image {
    pub(super) fn dot(&mut self, x: i64, y: i64, colour: [u8; 3]) {
        if (0..self.width as i64).contains(&x) && (0..self.height as i64).contains(&y) {
            self.set_pixel(x as usize, y as usize, colour);
        }
    }

    /// A straight line, so many pixels thick.
    pub(super) fn line(&mut self, from: [i64; 2], to: [i64; 2], thick: i64, colour: [u8; 3]) {
        let steps = (to[0] - from[0]).abs().max((to[1] - from[1]).abs()).max(1);
        for step in 0..=steps {
            let at = |i: usize| from[i] + ((to[i] - from[i]) * step + steps / 2).div_euclid(steps);
            let (x, y) = (at(0), at(1));
            for (across, down) in (0..thick * thick).map(|i| (i % thick, i / thick)) {
                self.dot(x + across - thick / 2, y + down - thick / 2, colour);
            }
        }
    }

    pub(super) fn disc(&mut self, centre: [i64; 2], radius: i64, colour: [u8; 3]) {
        self.within(centre, 0..radius * radius + 1, radius, colour);
    }

    /// A circle of so many pixels' thickness inwards.
    pub(super) fn ring(&mut self, centre: [i64; 2], radius: i64, thick: i64, colour: [u8; 3]) {
        let inner = radius - thick;
        self.within(centre, inner * inner..radius * radius + 1, radius, colour);
    }

    /// The pixels whose squared distance from the centre lies in a range.
    fn within(&mut self, [x, y]: [i64; 2], squares: std::ops::Range<i64>, radius: i64, colour: [u8; 3]) {
        for down in -radius..=radius {
            for across in -radius..=radius {
                if squares.contains(&(across * across + down * down)) {
                    self.dot(x + across, y + down, colour);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_rings_are_where_they_should_be() {
        let mut image = Image::new(7, 5, [0; 3]).unwrap();
        image.line([0, 0], [6, 3], 1, [1; 3]);
        let drawn = |image: &Image| {
            let places = (0..35).filter(|i| image.pixel(i % 7, i / 7) != [0; 3]);
            places.map(|i| (i % 7, i / 7)).collect::<Vec<_>>()
        };
        assert_eq!(drawn(&image), [(0, 0), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3)]);
        let mut ring = Image::new(7, 5, [0; 3]).unwrap();
        ring.ring([3, 2], 2, 1, [1; 3]);
        assert_eq!(
            drawn(&ring),
            [(3, 0), (2, 1), (3, 1), (4, 1), (1, 2), (2, 2), (4, 2), (5, 2), (2, 3), (3, 3), (4, 3), (3, 4)]
        );
        // Beyond the edge there is nothing to draw on.
        ring.disc([6, 4], 9, [2; 3]);
        ring.line([-5, -5], [100, 100], 3, [3; 3]);
        assert_eq!((ring.pixel(6, 2), ring.pixel(2, 2)), ([2; 3], [3; 3]));
    }
}
