"""
Learning from a stream
======================

Samples arrive in batches, and none can be kept. ``partial_fit`` blends what each batch says into the model;
the model itself is all the memory there is. It is approximate. Where samples can be read again, a few full
passes from there cost little and are exact.
"""

# %%
# Digits of 8×8 pixels, in batches of 150. A fifth is held out, to see how likely digits are that never took
# part.
import matmix
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

X = np.random.default_rng(0).permutation(load_digits().images)
held_out, stream = X[:360], X[360:]
batches = np.array_split(np.concatenate([stream] * 4), 36)

# %%
# The stream passes four times. Each batch is seen, and gone.
model = matmix.Mixture(10, rank=4, random_state=0)
course, pictures = [], {}
for number, batch in enumerate(batches, 1):
    model.partial_fit(batch)
    course.append(model.score(held_out))
    if number in (1, 4, 12, 36):
        pictures[number] = model.means_.copy()

# %%
# For comparison: all samples kept, from the start, and polished from where the stream has led.
whole = matmix.Mixture(10, rank=4, random_state=0).fit(stream)
polished = matmix.Mixture(10, rank=4, init_params=model, random_state=0).fit(stream)
print(f"held out: {course[0]:.1f} after one batch, {course[-1]:.1f} after {len(batches)}")
print(f"all samples kept: {whole.score(held_out):.1f}; polished after the stream: {polished.score(held_out):.1f}")

# %%
# The course, and the means of the components after 1, 4, 12 and 36 batches.
fig = plt.figure(figsize=(11, 3.6), layout="constrained")
left, right = fig.subfigures(1, 2, width_ratios=(1, 1.5))
ax = left.subplots()
ax.plot(range(1, len(batches) + 1), course, color="#3b6fb6", label="partial_fit")
ax.axhline(whole.score(held_out), color="#5b5b5b", linestyle=":", label="all samples kept")
ax.axhline(polished.score(held_out), color="#d1603d", linestyle="--", label="polished")
ax.set(xlabel="batches seen", ylabel="held-out log-likelihood")
ax.legend(frameon=False, loc="lower right")
for line, (count, means) in zip(right.subplots(4, 10), pictures.items(), strict=True):
    line[0].set_ylabel(f"{count}", rotation=0, labelpad=12, va="center")
    for ax, mean in zip(line, means, strict=True):
        ax.imshow(mean, cmap="gray", vmin=0, vmax=16)
        ax.set(xticks=[], yticks=[])
plt.show()
