"""Makes the files beside it: one picture, given by a formula, in the formats and variants that are read.

Needs numpy, pillow, tifffile and imagecodecs. The pictures are checked by ../images.rs, which has the formula too.
"""

from pathlib import Path

import numpy as np
import tifffile
from PIL import Image

here = Path(__file__).parent
i, j = np.mgrid[:12, :18]
grey = (12 * i + 5 * j).astype(np.uint8)
colour = np.stack([grey, 255 - grey, 10 * i + 3 * j], axis=-1).astype(np.uint8)
alpha = np.dstack([colour, 100 + i]).astype(np.uint8)
wide = grey.astype(np.uint16) * 300
single = grey.astype(np.float32) / 7 - 3
bits = (grey > 100) * np.uint8(255)


def save(name, x, **options):
    Image.fromarray(x).save(here / name, **options)


save("grey.png", grey)
save("colour.png", colour)
save("alpha.png", alpha)
save("wide.png", wide)
Image.fromarray(bits).convert("1").save(here / "bits.png")
Image.fromarray(grey).quantize(256).save(here / "palette.png")
save("grey.jpg", grey, quality=95)
save("colour.jpg", colour, quality=95, subsampling=2)
save("progressive.jpg", colour, quality=95, subsampling=1, progressive=True)
save("restarts.jpg", colour, quality=95, subsampling=0, restart_marker_blocks=1)
Image.fromarray(colour).convert("CMYK").save(here / "inks.jpg", quality=95)
save("grey.bmp", grey)
save("colour.bmp", colour)
Image.fromarray(alpha).save(here / "alpha.bmp")
Image.fromarray(bits).convert("1").save(here / "bits.bmp")
save("grey.pgm", grey)
save("colour.ppm", colour)
Image.fromarray(bits).convert("1").save(here / "bits.pbm")
save("wide.pgm", wide)
plain = " ".join(map(str, grey.ravel()))
(here / "text.pgm").write_text(f"P2\n# as text\n18 12\n255\n{plain}\n")

tif = lambda name, x, **options: tifffile.imwrite(here / name, x, metadata=None, software=False, **options)
tif("grey.tif", grey, photometric="minisblack")
tif("white.tif", 255 - grey, photometric="miniswhite")
tif("colour.tif", colour, photometric="rgb", compression="lzw", predictor=True)
tif("planes.tif", colour.transpose(2, 0, 1), photometric="rgb", planarconfig="separate", compression="deflate")
tif("alpha.tif", alpha, photometric="rgb", extrasamples=["unassalpha"], compression="packbits")
tif("wide.tif", wide, photometric="minisblack", byteorder=">", compression="deflate", predictor=True)
tif("tiles.tif", grey, photometric="minisblack", tile=(16, 16), compression="lzw")
tif("single.tif", single, photometric="minisblack")
tif("predicted.tif", single, photometric="minisblack", compression="deflate", predictor=3)
tif("half.tif", single.astype(np.float16), photometric="minisblack")
tif("double.tif", single.astype(np.float64), photometric="minisblack", bigtiff=True)
tif("signed.tif", grey.astype(np.int16) * 100 - 10000, photometric="minisblack")
tif("rows.tif", grey, photometric="minisblack", rowsperstrip=1)
Image.fromarray(bits).convert("1").save(here / "fax.tif", compression="group4")
with tifffile.TiffWriter(here / "stack.tif") as out:
    for page in range(5):
        out.write(grey + np.uint8(page), photometric="minisblack", metadata=None, software=False)
        if page == 0:
            # A thumbnail, which is no page of its own.
            out.write(grey[::3, ::3], photometric="minisblack", subfiletype=1, metadata=None, software=False)
