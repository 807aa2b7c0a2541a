# %% [markdown]
# # Handwritten digits: from loading to pictures
#
# A notebook in the form of a script: editors show the cells, `python python/examples/digits.py` runs them all and
# leaves the pictures in the folder given as its argument (by default `out/python-digits`).

# %%
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matmix
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/python-digits")
folder.mkdir(parents=True, exist_ok=True)


def show(name: str) -> None:
    plt.savefig(folder / f"{name}.png", dpi=150)
    plt.close("all")


# %% [markdown]
# ## The data
# 1,000 digits as 28 × 28 bytes. The samples stay matrices: nothing is flattened.

# %%
digits = matmix.datasets.load_digits28()
print(digits)
X, y = digits.data, digits.target
train, test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)

# %% [markdown]
# ## A mixture of ten components with cores of 5 × 5

# %%
model = matmix.MixB2DPPCA(n_components=10, rank=5, n_init=3, random_state=0).fit(train)
print(f"{model.n_iter_} iterations, mean log-likelihood {model.lower_bound_:.2f} (test: {model.score(test):.2f})")
print(f"784 numbers become {np.prod(model.rank_)}; reconstruction error {model.reconstruction_error(test):.0f}")
print(f"components against digits: adjusted Rand index {adjusted_rand_score(y_test, model.predict(test)):.2f}")

# %%
matmix.plot.means(model)
show("means")
matmix.plot.reconstructions(model, test)
show("reconstructions")
matmix.plot.convergence(model)
show("convergence")
matmix.plot.loadings(model, count=(4, 4))
show("loadings")
matmix.plot.latent_walk(model)
show("latent_walk")
matmix.plot.embedding(model, test, y_test)
show("embedding")

# %% [markdown]
# ## Recognition: the nearest core
# The paper's 1-NN, and a shrunken discriminant on the same cores.

# %%
for distance in ("paper", "fisher"):
    nearest = matmix.NearestCore(model, distance=distance, prefit=True).fit(train, y_train)
    print(f"{distance}: {100 * nearest.score(test, y_test):.1f} % of the test digits recognised")

# %% [markdown]
# ## In a pipeline, with K and the rank chosen by cross-validated likelihood
# Arrays of three axes pass through `Pipeline` and `GridSearchCV` as they are.

# %%
scale = FunctionTransformer(lambda X: X.astype(np.float32) / 255)
grid = GridSearchCV(
    make_pipeline(scale, matmix.Mixture(max_iter=30, tol=1e-4, random_state=0)),
    {"mixture__n_components": [1, 4, 8], "mixture__rank": [3, 6, (8, 6)]},
    cv=3,
)
grid.fit(train)
print("chosen:", grid.best_params_)
assert grid.best_params_["mixture__n_components"] > 1

# %% [markdown]
# ## Anomalies: what the model finds improbable
# A patch in the middle of each test digit is inverted; the log-likelihood tells the damaged digits from the others,
# without the model ever having seen a damaged one. (It does not tell one digit from another: a simple digit of a class
# the model does not know can be more probable than an intricate one of a class it knows.)

# %%
watch = matmix.Mixture(8, rank=8, random_state=0).fit(train)
broken = test.copy()
broken[:, 10:18, 10:18] = 255 - broken[:, 10:18, 10:18]
both = np.concatenate([test, broken])
area = roc_auc_score(np.repeat([0, 1], len(test)), -watch.score_samples(both))
print(f"digits with a patch inverted: area under the ROC curve {area:.2f}")
assert area > 0.8

fig, ax = plt.subplots(figsize=(5.6, 3.0), layout="constrained")
lowest = np.percentile(-watch.score_samples(both), [0.5, 99])
bins = np.linspace(*lowest, 50)
ax.hist(-watch.score_samples(test), bins, color="#3b6fb6", alpha=0.75, label="as they are")
ax.hist(-watch.score_samples(broken), bins, color="#d1603d", alpha=0.75, label="patch inverted")
ax.set_xlabel("− log-likelihood")
ax.set_ylabel("digits")
ax.legend(frameon=False)
for side in ("top", "right"):
    ax.spines[side].set_visible(False)
show("anomalies")

# %% [markdown]
# ## The model file
# Rust and the program `matmix` read the same file.

# %%
model.save(folder / "digits.safetensors")
again = matmix.load(folder / "digits.safetensors")
assert np.array_equal(again.predict(test), model.predict(test))
print("saved and read:", again)
