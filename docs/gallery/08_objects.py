"""
Clustering objects under changing light
=======================================

The same thing looks different when the light comes from elsewhere, often more different than two things under
the same light. Its pictures lie near a subspace of few dimensions, though, and a mixture has a subspace for
every component; k-means has a point.
"""

# %%
# Five bodies as a camera sees them, 32×32 pixels, each turned, moved and lit from a direction of its own.
import matmix
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

rng = np.random.default_rng(0)
v, u = np.mgrid[-1:1:32j, -1:1:32j]


def body(kind, x, y):
    """The height of a body over the point (x, y); 0 where there is none."""
    r = np.hypot(x, y)
    return {
        "ball": np.sqrt(np.clip(0.64 - r**2, 0, None)),
        "cone": np.clip(0.85 - r, 0, None),
        "ring": np.sqrt(np.clip(0.0625 - (r - 0.55) ** 2, 0, None)),
        "roof": np.where((abs(x) < 0.65) & (abs(y) < 0.75), np.clip(0.65 - abs(x), 0, None), 0),
        "barrel": np.where(abs(y) < 0.75, np.sqrt(np.clip(0.3 - x**2, 0, None)), 0),
    }[kind]


def photograph(kind):
    angle, (dx, dy) = rng.normal(scale=0.06), rng.normal(scale=0.03, size=2)
    x = np.cos(angle) * (u - dx) + np.sin(angle) * (v - dy)
    y = np.cos(angle) * (v - dy) - np.sin(angle) * (u - dx)
    height = body(kind, x, y)
    slope_y, slope_x = np.gradient(height, 2 / 31)
    steep, around = rng.uniform(0.35, 1.0), rng.uniform(0, 2 * np.pi)
    light = np.array([np.sin(steep) * np.cos(around), np.sin(steep) * np.sin(around), np.cos(steep)])
    shade = (light[2] - light[0] * slope_x - light[1] * slope_y) / np.sqrt(1 + slope_x**2 + slope_y**2)
    picture = np.where(height > 0, 0.12 + 0.88 * np.clip(shade, 0, None), 0.05)
    return picture + 0.03 * rng.normal(size=picture.shape)


KINDS = ["ball", "cone", "ring", "roof", "barrel"]
kinds = np.repeat(np.arange(5), 80)
X = np.array([photograph(KINDS[kind]) for kind in kinds])

# %%
# All are told that there are five.
flat = X.reshape(len(X), -1)
reduced = PCA(20, random_state=0).fit_transform(flat)
model = matmix.Mixture(5, rank=6, random_state=0).fit(X)
found = {
    "k-means": KMeans(5, n_init=5, random_state=0).fit_predict(flat),
    "PCA + Gaussian mixture": GaussianMixture(5, n_init=5, random_state=0).fit_predict(reduced),
    "matmix": model.predict(X),
}
for name, labels in found.items():
    print(f"{name:24} adjusted Rand index {adjusted_rand_score(kinds, labels):.2f}")

# %%
# Some members of each cluster, of k-means on the left and of the mixture on the right, with the index. Rings are
# found by both; the others k-means divides by where the light comes from.
fig, axes = plt.subplots(5, 15, figsize=(11, 4.1), layout="constrained", width_ratios=[1] * 7 + [0.4] + [1] * 7)
for first, labels in ((0, found["k-means"]), (8, found["matmix"])):
    for k in range(5):
        members = rng.choice(np.flatnonzero(labels == k), 7)
        for ax, one in zip(axes[k, first : first + 7], members, strict=True):
            ax.imshow(X[one], cmap="gray", vmin=0, vmax=1)
for ax in axes.ravel():
    ax.axis("off")
for column, name in ((3, "k-means"), (11, "matmix")):
    axes[0, column].set_title(f"{name}: {adjusted_rand_score(kinds, found[name]):.2f}")
plt.show()
