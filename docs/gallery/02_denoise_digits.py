"""
Noisy digits, without a clean one to learn from
===============================================

All there is are noisy digits. A mixture fitted to them knows how large the noise is and what digits have in
common; the posterior mean of a sample is the digit without its noise. PCA does the same with one flat
subspace.
"""

# %%
# Strong noise: its deviation is 0.4 of the range of the values.
import matmix
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

clean, y = matmix.datasets.load_digits28(return_X_y=True)
clean = clean[::2] / 255
noisy = clean + np.random.default_rng(0).normal(scale=0.4, size=clean.shape)


def error(found):
    """Root mean square error per pixel."""
    return np.sqrt(np.mean((found - clean) ** 2))


# %%
# PCA has to be told how many components to keep. It gets the number that is best for the clean digits, which
# nobody would know.
flat = noisy.reshape(len(noisy), -1)
pca = PCA(60, random_state=0).fit(flat)


def by_pca(n):
    return (pca.transform(flat)[:, :n] @ pca.components_[:n] + pca.mean_).reshape(clean.shape)


kept = [5, 10, 15, 20, 25, 30, 40, 60]
errors = [error(by_pca(n)) for n in kept]
best = kept[int(np.argmin(errors))]

# %%
# The mixture: three components (with cores of 8×8 and more, 500 digits with this much noise do not support ten), and
# cores of 4×4, 8×8 and 12×12. Entries of a core that hold nothing but noise have small variances, and the posterior
# mean shrinks them by itself: a rank that is too large costs little.
ranks = [4, 8, 12]
models = [matmix.Mixture(3, rank=r, tol=1e-3, random_state=0).fit(noisy) for r in ranks]
rebuilt = [model.denoise(noisy) for model in models]
for r, model, found in zip(ranks, models, rebuilt, strict=True):
    deviation = np.sqrt(model.noise_variances_ @ model.weights_)
    print(f"cores {r}×{r}: error {error(found):.3f}, noise found {deviation:.3f} (0.4 was added)")
print(f"PCA, the best of {kept}: {best} components, error {min(errors):.3f}")
print(f"the noisy digits themselves: {error(noisy):.3f}")

# %%
# One digit of each kind.
shown = np.arange(10) * 50 + 6
rows = [
    ("clean", clean),
    ("noisy", noisy),
    (f"PCA, {best}", by_pca(best)),
    ("mixture, 8×8", rebuilt[1]),
]
fig, axes = plt.subplots(len(rows), 10, figsize=(10, 4.2), layout="constrained")
for line, (name, pictures) in zip(axes, rows, strict=True):
    line[0].set_ylabel(name, fontsize=9)
    for ax, picture in zip(line, pictures[shown], strict=True):
        ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
plt.show()
