"""scikit-learn's own checks of what it calls an estimator."""

import matmix
from sklearn.utils.estimator_checks import parametrize_with_checks

# Whatever takes vectors goes through all of them; nothing is expected to fail.
VECTORS = [
    matmix.Mixture(),
    matmix.Mixture(n_components=2, rank=1),
    matmix.LowRank(),
    matmix.LowRank(rank=1, center=False),
    matmix.NearestCore(),
    matmix.NearestCore(matmix.LowRank()),
    matmix.OutlierDetector(),
    matmix.OutlierDetector(matmix.PPCA(rank=1)),
    matmix.PPCA(),
    matmix.MixPPCA(),
    matmix.MixtureClassifier(),
    matmix.MixtureClassifier(rank=1, unlabeled=-1),
]


def expected_failures(estimator):
    """Two there are. k-means++ draws its centres from the samples, so that with the same seed a sample of
    weight 2 and two samples of weight 1 lead to different starts, and with more than one component to different
    optima. With one component, where nothing is drawn, the check is passed. (scikit-learn's KMeans fails it likewise.)
    And −1 is a class in one check, but not to a classifier that is told that it means no label.
    (scikit-learn leaves its own semi-supervised classifiers out of that check by their names.)
    """
    if isinstance(estimator, matmix.MixtureClassifier) and estimator.unlabeled is not None:
        return {"check_classifiers_classes": "−1 is not a class"}
    if getattr(estimator, "n_components", 1) > 1:
        return {"check_sample_weight_equivalence_on_dense_data": "the start draws from the samples"}
    return {}


@parametrize_with_checks(VECTORS, expected_failed_checks=expected_failures)
def test_all_checks(estimator, check):
    check(estimator)


# The names that take matrices only take the checks' vectors of any length as matrices of one column or of one row.
MATRICES = [
    matmix.MixB2DPPCA(sample_shape=(-1, 1)),
    matmix.MixB2DPPCA(2, rank=1, sample_shape=(1, -1)),
    matmix.PSOPCA(sample_shape=(-1, 1)),
    matmix.MP2DPCA(sample_shape=(1, -1)),
    matmix.GLRAM(sample_shape=(-1, 1)),
    matmix.MPCA(sample_shape=(1, -1)),
    matmix.TwoDPCA(sample_shape=(1, -1)),
]


@parametrize_with_checks(MATRICES, expected_failed_checks=expected_failures)
def test_all_checks_through_sample_shape(estimator, check):
    check(estimator)
