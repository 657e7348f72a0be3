"""The drawing shows the report's figures."""

import pytest

pytest.importorskip("matplotlib")

from cuda_routing.plot import draw_route
from cuda_routing.report import route_report


@pytest.mark.parametrize("ranks", [8, 300])
def test_one_panel_a_rule(ranks: int) -> None:
    """Each rule has a panel with its figures; bar heights are loads in percent."""
    info = route_report(["zipf:1.1:100000"], ranks)
    figure = draw_route(info)
    assert len(figure.axes) == len(info.balances)
    for axis, (rule, found) in zip(figure.axes, info.balances.items(), strict=True):
        title = axis.get_title(loc="left")
        assert rule.dist_type in title
        assert f"{found.max_over_mean:.2f}" in title
        if ranks == 8:
            heights = [bar.get_height() for bar in axis.patches]
            assert heights == pytest.approx((found.loads * 100).tolist())
