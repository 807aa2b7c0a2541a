"""scikit-learn's own checks of what it calls an estimator."""

import inspect

import matmix
import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

# Whatever takes vectors goes through all of them; nothing is expected to fail.
VECTORS = [
    matmix.Mixture(),
    matmix.Mixture(n_components=2, rank=1),
    matmix.LowRank(),
    matmix.LowRank(rank=1, center=False),
    matmix.NearestCore(),
    matmix.NearestCore(matmix.LowRank()),
    matmix.PPCA(),
    matmix.MixPPCA(),
]


@parametrize_with_checks(VECTORS)
def test_all_checks(estimator, check):
    check(estimator)


MATRICES = [
    matmix.MixB2DPPCA,
    matmix.PSOPCA,
    matmix.MP2DPCA,
    matmix.GLRAM,
    matmix.MPCA,
    matmix.TwoDPCA,
]

# The checks choose their own numbers of columns (1, 2, 3, 4, 5, 10, 20 …). Those listed here use ten, or none at
# all, and say something about samples of 5 × 2 in rows of ten numbers. Left out are the checks that need another
# number of columns than `sample_shape` has, which is what `sample_shape` is there to refuse.
APPLICABLE = {
    "check_dict_unchanged": (2, 2),
    "check_do_not_raise_errors_in_init_or_set_param": (5, 2),
    "check_dont_overwrite_attributes": (1, 3),
    "check_estimator_cloneable": (5, 2),
    "check_estimator_get_tags_default_keys": (5, 2),
    "check_estimator_repr": (5, 2),
    "check_estimator_tags_renamed": (5, 2),
    "check_estimators_dtypes": (5, 1),
    "check_estimators_fit_returns_self": (1, 2),
    "check_estimators_nan_inf": (5, 2),
    "check_estimators_overwrite_params": (1, 2),
    "check_estimators_pickle": (1, 2),
    "check_estimators_unfitted": (2, 2),
    "check_f_contiguous_array_estimator": (1, 2),
    "check_fit1d": (5, 2),
    "check_fit2d_1sample": (5, 2),
    "check_get_params_invariance": (5, 2),
    "check_mixin_order": (5, 2),
    "check_no_attributes_set_in_init": (5, 2),
    "check_parameters_default_constructible": (5, 2),
    "check_set_params": (5, 2),
    "check_transformers_unfitted": (2, 2),
    "check_fit_idempotent": (2, 1),
    "check_methods_sample_order_invariance": (1, 3),
    "check_methods_subset_invariance": (1, 3),
    "check_positive_only_tag_during_fit": (5, 2),
    "check_readonly_memmap_input": (1, 2),
    "check_complex_data": (5, 2),
    "check_dtype_object": (5, 2),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", MATRICES, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("check", APPLICABLE)
def test_the_checks_that_apply_to_matrices(cls, check):
    function = getattr(estimator_checks, check)
    assert list(inspect.signature(function).parameters)[:2] == ["name", "estimator_orig"]
    function(cls.__name__, cls(rank=1, sample_shape=APPLICABLE[check]))
