"""
Hyperspectral cubes: samples of order 3
=======================================

A window of a hyperspectral picture has rows, columns and bands. Every mode gets loadings of its own: a few
shapes in space, a few spectra. Components turn out to be materials and borders between them, without a single
label.
"""

# %%
# A made scene of 144×144 pixels and 48 bands from 400 to 1000 nm: meadow, bare soil, a river, roofs. Light
# and moisture change over the land, pixels at borders are mixed, the sensor adds noise.
import matmix
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

rng = np.random.default_rng(0)
nm = np.linspace(400, 1000, 48)
rise = 1 / (1 + np.exp(-(nm - 715) / 14))
spectra = np.array(
    [
        0.04 + 0.06 * np.exp(-(((nm - 550) / 35) ** 2)) + 0.42 * rise,  # meadow: green, and bright beyond 700 nm
        0.08 + 0.30 * ((nm - 400) / 600) ** 0.8,  # soil
        0.09 * np.exp(-(nm - 400) / 180) + 0.01,  # water
        0.10 + 0.22 / (1 + np.exp(-(nm - 590) / 18)),  # roofs of tiles
    ]
)
side = 144
rows, columns = np.mgrid[:side, :side]
truth = np.where(gaussian_filter(rng.normal(size=(side, side)), 14) > 0.004, 1, 0)
truth[np.abs(columns - 95 - 22 * np.sin(rows / 26)) < 11] = 2
for i, j in [(20, 15), (20, 45), (48, 18), (50, 48), (80, 12), (110, 30), (115, 60)]:
    truth[i : i + 17, j : j + 20] = 3
shares = np.stack([gaussian_filter((truth == m).astype(float), 0.8) for m in range(4)], axis=2)
light = 1 + 3.5 * gaussian_filter(rng.normal(size=(side, side)), 9)
moist = 2.5 * gaussian_filter(rng.normal(size=(side, side)), 5)
scene = shares @ spectra * light[..., None]
scene += 0.2 * moist[..., None] * shares[..., :1] * (rise - 0.5) + 0.012 * rng.normal(size=scene.shape)

# %%
# Windows of 4×4 pixels: 1,296 samples of 4×4×48 numbers, reduced to cores of 2×2×1. Six components: there are
# four materials, and windows that hold two of them want components of their own.
windows = scene.reshape(36, 4, 36, 4, 48).swapaxes(1, 2).reshape(-1, 4, 4, 48)
model = matmix.Mixture(6, rank=(2, 2, 1), random_state=0).fit(windows)
labels = truth.reshape(36, 4, 36, 4).swapaxes(1, 2).reshape(-1, 16)
pure = (labels == labels[:, :1]).all(axis=1)
found = model.predict(windows)
which = np.array([np.bincount(labels[found == k].ravel(), minlength=4).argmax() for k in range(6)])
right = np.mean(which[found[pure]] == labels[pure, 0])
print(f"of the windows with one material {right:.0%} are in a component that is mostly of it")
print("loadings of the modes:", [u.shape[1:] for u in model.loadings_])

# %%
# The scene in true colours; the components of its windows, each with a shade of the material that it mostly
# holds; and the spectra of their means, with the spectral loading as a band around each: the light on a
# meadow changes it most beyond 700 nm.
band = {name: int(np.abs(nm - at).argmin()) for name, at in (("red", 640), ("green", 550), ("blue", 460))}
picture = np.clip(scene[..., list(band.values())] * (2.6, 3.4, 3.8), 0, 1)
shades = ["#5c9b3c #a8cf8a #3a6b22", "#b08d57 #d9c3a0 #7d6136", "#3f6fa8 #9fbbe0 #26476f", "#c0563d #e3a493 #83301d"]
taken = [np.sum(which[:k] == which[k]) for k in range(6)]
colours = [shades[material].split()[min(n, 2)] for material, n in zip(which, taken, strict=True)]
fig, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained", width_ratios=(1, 1, 1.3))
axes[0].imshow(picture)
axes[0].set_title("the scene")
shade = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in colours])
axes[1].imshow(shade[found].reshape(36, 36, 3))
axes[1].set_title("components of its windows")
for k in np.argsort(which):
    mean = model.means_[k].mean(axis=(0, 1))
    sway = model.loadings_[2][k, :, 0] * np.prod([np.abs(model.loadings_[d][k, :, 0]).mean() for d in (0, 1)])
    name = ["meadow", "soil", "water", "roofs"][which[k]]
    axes[2].plot(nm, mean, color=colours[k], label=f"{name}, {100 * model.weights_[k]:.0f} %")
    axes[2].fill_between(nm, mean - sway, mean + sway, color=colours[k], alpha=0.2, linewidth=0)
axes[2].set(xlabel="nm", ylabel="reflectance", title="spectra")
axes[2].legend(frameon=False)
for ax in axes[:2]:
    ax.set(xticks=[], yticks=[])
plt.show()
