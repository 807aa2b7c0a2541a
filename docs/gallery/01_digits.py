"""
Digits in three minutes
=======================

Fit a mixture to a thousand handwritten digits, then ask it everything it can answer: what its components look
like, what it makes of a digit it has not seen, which digits it finds odd, and what it would write itself.
"""

# %%
# The digits come with matmix: 28×28 bytes each, 100 of every kind. Every fifth is kept aside.
import matmix
import matplotlib.pyplot as plt
import numpy as np

X, y = matmix.datasets.load_digits28(return_X_y=True)
aside = np.arange(len(X)) % 5 == 4
known, unseen = X[~aside], X[aside]

# %%
# Ten components with cores of 8×8. ``scale`` turns bytes into values up to 1, without a copy.
model = matmix.Mixture(n_components=10, rank=8, scale=1 / 255, tol=1e-4, random_state=0).fit(known)
print(model.history_.stop, "after", model.n_iter_, "iterations and", f"{model.history_.seconds:.1f} s")
print(f"mean log-likelihood: {model.score(known):.0f} of the digits it knows, {model.score(unseen):.0f} of the others")

# %%
# The means of the components, with their weights. Nobody said what a digit is: several are found as they are,
# and digits that are written alike share a component.
matmix.plot.means(model)
plt.show()

# %%
# A component has loadings for rows and for columns. Their outer products are the strokes that an entry of the
# core adds.
matmix.plot.loadings(model, component=int(model.weights_.argmax()), count=(4, 6))
plt.show()

# %%
# sphinx_gallery_thumbnail_number = 3
# Digits it has not seen, what is left of them in 64 numbers, and what is lost.
matmix.plot.reconstructions(model, unseen[::20], count=10)
plt.show()

# %%
# The least likely of the unseen digits; and what a model with more and simpler components draws by itself,
# one sample of each of its largest. The entries of a core are independent, so that strokes of drawn digits do
# not always agree.
odd = unseen[np.argsort(model.score_samples(unseen))[:10]]
simple = matmix.Mixture(n_components=40, rank=2, scale=1 / 255, tol=1e-4, random_state=0).fit(known)
drawn, components = simple.sample(400, random_state=0, noise=False)
drawn = [drawn[components == k][0] for k in np.argsort(-simple.weights_)[:10]]
fig, axes = plt.subplots(2, 10, figsize=(10, 2.2), layout="constrained")
for row, (pictures, name) in enumerate([(odd, "least likely"), (drawn, "drawn")]):
    axes[row, 0].set_ylabel(name)
    for ax, picture in zip(axes[row], pictures, strict=True):
        ax.imshow(picture, cmap="gray", vmin=0, vmax=picture.max())
        ax.set(xticks=[], yticks=[])
plt.show()

# %%
# The file is read by Rust and by the shell, too, and the report is one page that opens in any browser:
# ``model.save("digits.safetensors")``, ``model.report(X, "report.html", y=y)``.
