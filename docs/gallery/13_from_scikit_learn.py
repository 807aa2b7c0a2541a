"""
From PCA + GaussianMixture to matmix
====================================

The usual recipe flattens pictures, reduces them by PCA and fits a Gaussian mixture to what is left. Here is
the same job line by line, and what changes: pictures stay pictures, reduction and clustering are one model,
and its likelihood is that of the pixels.
"""

# %%
import matmix
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

X, y = matmix.datasets.load_digits28(return_X_y=True)
X = X / 255
train, test = X[::2], X[1::2]

# %%
# The recipe: 16 numbers per digit, a Gaussian mixture over them.
flat, flat_test = train.reshape(500, -1), test.reshape(500, -1)
pca = PCA(16, random_state=0).fit(flat)
gmm = GaussianMixture(5, covariance_type="diag", reg_covar=1e-3, random_state=0).fit(pca.transform(flat))
clusters = gmm.predict(pca.transform(flat_test))
rebuilt = pca.inverse_transform(pca.transform(flat_test)).reshape(test.shape)

# %%
# matmix: one estimator, and no flattening. Cores of 4×4 are 16 numbers, too.
model = matmix.Mixture(n_components=5, rank=4, random_state=0).fit(train)
clusters = model.predict(test)
rebuilt = model.reconstruct(test)
cores, _ = model.cores(test)
print("cores", cores.shape, "responsibilities", model.predict_proba(test).shape)


# %%
# The recipe is a density of pictures, too, if one writes it down: the mixture inside the subspace, PCA's
# noise across it.
def recipe(kept):
    """Mean log-likelihood and error of the unseen digits."""
    pca = PCA(kept, random_state=0).fit(flat)
    inside = pca.transform(flat_test)
    across = ((flat_test - pca.inverse_transform(inside)) ** 2).sum(axis=1)
    gmm = GaussianMixture(5, covariance_type="diag", reg_covar=1e-3, random_state=0).fit(pca.transform(flat))
    noise = pca.noise_variance_
    density = gmm.score_samples(inside) - 0.5 * ((flat.shape[1] - kept) * np.log(2 * np.pi * noise) + across / noise)
    return density.mean(), np.sqrt(across.mean())


def mixture(rank):
    model = matmix.Mixture(5, rank=rank, tol=1e-3, random_state=0).fit(train)
    return model.score(test), model.reconstruction_error(test)


# %%
# As many numbers per digit for both. From 16 or 36 numbers the recipe rebuilds a little better: its loadings
# are whole pictures, where a bilateral model has rows and columns. From 64 on the mixture does, and as a
# density of unseen digits it is ahead and stays there, while more numbers make the recipe overfit.
sides = [2, 4, 6, 8, 12, 16]
numbers = np.square(sides)
theirs, ours = np.array([recipe(n) for n in numbers]).T, np.array([mixture(r) for r in sides]).T
fig, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for ax, name, mine, others in zip(axes, ("log-likelihood", "error"), ours, theirs, strict=True):
    ax.plot(numbers, mine, "o-", color="#3b6fb6", label="matmix")
    ax.plot(numbers, others, "s--", color="#d1603d", label="PCA + GaussianMixture")
    ax.set(xlabel="numbers kept per digit", ylabel=f"{name} of unseen digits", xscale="log")
    ax.set_xticks(numbers, numbers)
    ax.minorticks_off()
    ax.legend(frameon=False)
plt.show()
