"""The bounds: the worked example to the digit, and each pitfall with a small problem that shows it."""

import pytest
import torch

from harness.sol.bounds import analyse, floor, speed_of_light
from harness.sol.hardware import DEVICES, UnknownDevice, limits_at_hand, limits_of, limits_of_product

H100 = limits_of("h100-sxm")


@pytest.fixture
def analysed(workload):
    return lambda *args, dtype=torch.float32, **kwargs: analyse(workload(*args, **kwargs), dtype)


def least(analysis):
    """Share of the direct products that the floor counts."""
    return analysis.least.flops / analysis.direct.contraction


def reasons(analysis):
    return " | ".join(discount.reason for discount in analysis.discounts)


def weights(*shape):
    return f"self.w = nn.Parameter(torch.rand{shape})"


class TestWorkedExample:
    """4096 x 4096 matrix product in FP32 on an H100 SXM at 1500 of 1980 MHz."""

    @pytest.fixture
    def analysis(self, problem):
        return analyse(problem("1/1").workload("full"))

    def test_work(self, analysis):
        assert analysis.direct.flops == 137_438_953_472 and analysis.direct.bytes == 201_326_592
        assert f"{analysis.direct.flops / analysis.direct.bytes:.1f}" == "682.7"

    def test_tf32(self, analysis):
        bound = speed_of_light(analysis, H100, sm_mhz=1500)
        assert f"{bound.peak_tflops:.2f}" == "374.77" and bound.peak_type == "TF32 TC (dense)"
        assert f"{bound.ms:.3f}" == "0.367" and f"{bound.compute_ms:.4f}" == "0.3667"
        assert f"{bound.memory_ms:.4f}" == "0.0601" and f"{bound.ridge:.1f}" == "111.9"
        assert bound.bottleneck == "compute"

    def test_fp16(self, analysis):
        bound = speed_of_light(analysis, H100, fp16=True, sm_mhz=1500)
        assert f"{bound.peak_tflops:.2f}" == "749.55" and f"{bound.ms:.4f}" == "0.1834"
        assert f"{bound.memory_ms:.4f}" == "0.0601"


class TestTraffic:
    def test_written_outputs_may_stay_in_l2(self, analysed):
        mega = 1 << 20
        small, large = (
            analysed("return x + 1", f"torch.rand({mega})"),
            analysed("return x + 1", f"torch.rand({64 * mega})"),
        )
        traffic = {
            (name, cold): floor(analysis, H100, cold).memory_ms * H100.max_gbps * 1e6
            for name, analysis in (("small", small), ("large", large))
            for cold in (True, False)
        }
        assert traffic["small", True] == pytest.approx(4 * mega)  # reads only
        assert traffic["small", False] == 0
        assert traffic["large", True] == pytest.approx((256 + 256 - 50) * mega)
        assert traffic["large", False] == pytest.approx((256 + 256 - 50) * mega)
        assert speed_of_light(small, H100).memory_ms * H100.gbps * 1e6 == pytest.approx(8 * mega)

    def test_each_tensor_has_its_own_element_size(self, analysed):
        inputs = "torch.rand(100), torch.ones(100, dtype=torch.int64), torch.ones(100, dtype=torch.bool)"
        body = dict(forward="return torch.where(m, x * i, x)", inputs=inputs, arguments="x, i, m")
        assert analysed(**body).direct.bytes == 100 * (4 + 8 + 1 + 4)
        assert analysed(**body, dtype=torch.float16).direct.bytes == 100 * (2 + 8 + 1 + 2)

    def test_an_alias_moves_nothing(self, analysed):
        handed_out = analysed("return x.view(2, 50)", "torch.rand(100)")
        assert handed_out.direct.bytes == 0 and "handed out" in handed_out.notes[0]

    def test_what_is_returned_and_read_is_read(self, analysed):
        assert analysed("return x, x + 1", "torch.rand(100)").direct.bytes == 800

    def test_an_output_with_stride_0_is_written_once(self, analysed):
        analysis = analysed("return (x + 1).expand(50, 100)", "torch.rand(100)")
        assert analysis.direct.writes == 400 and "100 are distinct" in analysis.notes[0]

    def test_a_tied_parameter_is_read_once(self, analysed):
        init = "self.w = nn.Parameter(torch.rand(9)); self.v = self.w"
        assert analysed("return x * self.w + self.v", "torch.rand(9)", init).direct.reads == 72

    def test_dead_inputs_and_parameters_cost_nothing(self, analysed):
        init = "self.live, self.dead = nn.Linear(8, 8), nn.Linear(8, 8)"
        analysis = analysed("self.dead(x)\n        return self.live(x)", "torch.rand(5, 8), torch.rand(99)", init,
                            arguments="x, unused")  # fmt: skip
        assert analysis.direct.reads == 4 * (5 * 8 + 8 * 8 + 8)
        assert analysis.direct.contraction == 2 * 5 * 8 * 8
        assert "unused, dead.weight, dead.bias" in analysis.notes[0] and "discarded" in analysis.notes[-1]

    def test_a_mask_that_the_constructor_builds_costs_nothing(self, analysed):
        init = 'self.register_buffer("mask", torch.tril(torch.ones(64, 64)))'
        assert analysed("return x.masked_fill(self.mask == 0, 0.0) + 0", "torch.rand(64, 64)", init).direct.reads == (
            4 * 64 * 65 // 2
        )
        drawn = init.replace("torch.ones", "torch.rand")
        both = analysed("return x * self.mask", "torch.rand(64, 64)", drawn)
        assert both.direct.reads == 2 * 4 * 64 * 65 // 2

    def test_an_embedding_reads_the_rows_that_it_is_asked_for(self, analysed):
        analysis = analysed("return F.embedding(i, self.w)", "torch.zeros(10, dtype=torch.int64)", weights(1000, 32),
                            arguments="i")  # fmt: skip
        assert analysis.direct.reads == 10 * 8 + 10 * 32 * 4
        assert analysis.least.reads == 10 * 8 + 32 * 4 and "indices may repeat" in reasons(analysis)

    def test_a_gather_reads_what_it_picks(self, analysed):
        analysis = analysed("return x.gather(1, i)", "torch.rand(100, 50), torch.zeros(100, 1, dtype=torch.int64)",
                            arguments="x, i")  # fmt: skip
        assert analysis.direct.reads == 100 * 8 + 100 * 4

    @pytest.mark.parametrize("body, inputs, bytes_", [
        ("return x.gather(1, i)", "torch.rand(100, 50), torch.zeros(100, 9, dtype=torch.int64)", 900 * 8),
        ("return x.exp().take(i)", "torch.rand(100, 50), torch.zeros(10, dtype=torch.int64)", 10 * 8),
        ("return F.embedding_bag(i, x)", "torch.rand(100, 50), torch.zeros(9, 4, dtype=torch.int64)", 36 * 8),
        ("return F.grid_sample(x, i, align_corners=False)", "torch.rand(1, 3, 9, 9), torch.rand(1, 8, 8, 2)", 128 * 4),
        ("return torch.where(i, x, x.exp())", "torch.rand(100, 50), torch.ones(100, 1, dtype=torch.bool)", 100),
        ("return x.exp().masked_fill(i, 0.0)", "torch.rand(100, 50), torch.ones(100, 50, dtype=torch.bool)", 5000),
        ("return x.scatter(1, i, 2 * x)", "torch.rand(100, 50), torch.zeros(100, 50, dtype=torch.int64)", 5000 * 8),
        ("return x.scatter_add(1, i, x)", "torch.rand(100, 50), torch.zeros(100, 50, dtype=torch.int64)", 5000 * 12),
        ("return torch.where(x > 0, x, i)", "torch.rand(100, 50), torch.rand(100, 50)", 5000 * 4),
        ("return (x * 2)[i]", "torch.rand(100, 50), torch.zeros(10, dtype=torch.int64)", 10 * 8),
        ("return x.index_select(1, i)", "torch.rand(1, 5000), torch.zeros(10, dtype=torch.int64)", 10 * 8),
    ])  # fmt: skip
    def test_what_an_index_or_a_mask_decides_on_is_no_part_of_the_floor(self, analysed, body, inputs, bytes_):
        """Honest kernels that read no more than was picked were below a floor that had the whole table."""
        analysis = analysed(body, inputs, arguments="x, i")
        assert analysis.least.reads == pytest.approx(bytes_)
        assert analysis.direct.reads > bytes_ or "indices may repeat" not in reasons(analysis)

    def test_a_product_of_which_a_mask_chooses_may_be_left_out(self, analysed):
        analysis = analysed("return torch.where(m, x @ x, 0.0)", "torch.rand(64, 64), torch.ones(64, 64).bool()",
                            arguments="x, m")  # fmt: skip
        assert analysis.direct.contraction == 2 * 64**3 and analysis.least.flops == 0

    def test_strided_reads_touch_some_elements(self, analysed):
        assert analysed("return x[::4] + 1", "torch.rand(100)").direct.reads == 25 * 4
        assert analysed(
            "return F.conv1d(x, self.w, stride=2)", "torch.rand(1, 1, 100)", weights(1, 1, 1)
        ).direct.reads == (50 * 4 + 4)

    def test_dropout_moves_no_mask(self, analysed):
        assert analysed("return F.dropout(x, 0.3)", "torch.rand(100)").direct.bytes == 800

    def test_a_problem_may_state_its_own_traffic(self, analysed):
        analysis = analysed("return x + 1", "torch.rand(100)", more="def get_bytes(): return 500")
        assert analysis.direct.bytes == 500 and analysis.least.bytes <= 500


class TestLeastWork:
    @pytest.mark.parametrize("padding, share", [(0, 1.0), (2, 12 / 18)])
    def test_taps_on_padding(self, analysed, padding, share):
        # windows of 3 over 4 positions: padded by 2 there are 6 stops, of which 12 of 18 taps meet data
        analysis = analysed(f"return F.conv1d(x, self.w, padding={padding})", "torch.rand(1, 1, 4)", weights(1, 1, 3))
        assert least(analysis) * 2 == pytest.approx(share)  # Winograd halves what remains

    def test_cropped_outputs_of_a_transposed_convolution(self, analysed):
        body = "return F.conv_transpose1d(x, self.w, padding=1)"
        analysis = analysed(body, "torch.rand(1, 1, 4)", weights(1, 1, 3))
        assert least(analysis) * 2 == pytest.approx(10 / 12) and "cropped" in reasons(analysis)

    @pytest.mark.parametrize("dimensions, taps, stride, share", [
        (2, 3, 1, 1 / 4), (1, 3, 1, 1 / 2), (3, 3, 1, 1 / 8), (2, 1, 1, 1), (2, 3, 2, 1 / 1.6**2), (2, 7, 1, 0),
    ])  # fmt: skip
    def test_winograd_and_fourier(self, analysed, dimensions, taps, stride, share):
        body = f"return F.conv{dimensions}d(x, self.w, stride={stride})"
        shape = ", ".join(["15"] * dimensions)
        analysis = analysed(body, f"torch.rand(2, 4, {shape})", weights(8, 4, *[taps] * dimensions))
        assert least(analysis) == pytest.approx(share)

    def test_strassen(self, analysed):
        sizes = {1024: 1, 4096: 7 / 8, 8192: (7 / 8) ** 2}
        for size, share in sizes.items():
            analysis = analysed("return x @ self.w", f"torch.rand(8192, {size})", weights(size, 8192))
            assert least(analysis) == pytest.approx(share)

    @pytest.mark.parametrize("after, share", [
        ("y.sum(1)", 1 / 16), ("(y + 1).mean(0) * 2", 1 / 8), ("F.avg_pool1d(y.unsqueeze(1), 4)", 1 / 4),
        ("(y * self.w[0]).sum(1)", 1 / 16), ("y.relu().sum(1)", 1), ("(y * y).sum(1)", 1), ("(1 / y).sum(1)", 1),
        ("y + y.mean(1, keepdim=True)", 1), ("y.max(1).values", 1),
    ])  # fmt: skip
    def test_a_sum_after_a_product_is_taken_before_it(self, analysed, after, share):
        analysis = analysed(f"y = x @ self.w\n        return {after}", "torch.rand(8, 32)", weights(32, 16))
        assert least(analysis) == pytest.approx(share)

    def test_pooling_after_a_convolution_is_folded_into_it(self, analysed):
        analysis = analysed(
            "return F.avg_pool2d(F.conv2d(x, self.w) + 1, 2)", "torch.rand(1, 4, 9, 9)", weights(8, 4, 2, 2)
        )
        assert least(analysis) == pytest.approx(1 / 4 / 1.6**2) and "pooling" in reasons(analysis)

    def test_train_mode_batch_norm_is_not_folded(self, analysed):
        init = "self.conv, self.norm = nn.Conv2d(4, 8, 1), nn.BatchNorm2d(8)"
        analysis = analysed("return self.norm(self.conv(x)).mean((2, 3))", "torch.rand(2, 4, 9, 9)", init)
        assert least(analysis) == 1 and analysis.direct.elementwise == 2 * 8 * 81 * (1 + 7 + 1)

    def test_paths_that_part_and_meet_between_two_products_are_followed_once(self, analysed):
        """Each time doubled what was followed: 40 of them would have taken years."""
        init = "self.a, self.b = nn.Linear(8, 64), nn.Linear(64, 8)"
        body = "y = self.a(x)\n        for _ in range(40): y = y * 2 + y * 3\n        return self.b(y)"
        assert analysed(body, "torch.rand(100, 8)", init).least.flops == pytest.approx(2 * 100 * 8 * 8)

    def test_two_linear_layers_in_a_row_are_composed(self, analysed):
        init = "self.a, self.b = nn.Linear(8, 512), nn.Linear(512, 8)"
        composed = analysed("return self.b(self.a(x))", "torch.rand(100, 8)", init)
        assert composed.least.flops == pytest.approx(2 * 100 * 8 * 8)
        assert least(analysed("return self.b(self.a(x).relu())", "torch.rand(100, 8)", init)) == 1

    def test_three_factors_may_be_multiplied_in_another_order(self, analysed):
        heads = ", ".join(["torch.rand(64, 8)"] * 3)
        linear = analysed("return (q @ k.T) @ v", heads, arguments="q, k, v")
        assert linear.least.flops == 2 * 2 * 64 * 8 * 8  # k.T @ v, and q times that
        causal = analysed("return (q @ k.T).tril() @ v", heads, arguments="q, k, v")
        assert least(causal) == pytest.approx(65 / 128 * 8 / 64)
        assert least(analysed("return (q @ k.T).softmax(1) @ v", heads, arguments="q, k, v")) == 1

    def test_the_same_product_is_computed_once(self, analysed):
        twice = "return (x @ self.w).tanh() + (x @ self.w).sigmoid()"
        analysis = analysed(twice, "torch.rand(8, 32)", weights(32, 16))
        assert least(analysis) == 1 / 2 and "before" in reasons(analysis)
        changed = "y = x @ self.w\n        x.mul_(2)\n        return y.tanh() + (x @ self.w).tanh()"
        assert least(analysed(changed, "torch.rand(8, 32)", weights(32, 16))) == 1

    @pytest.mark.parametrize("a, b, share", [
        ("upper_triangular", "upper_triangular", 65 * 66 / (6 * 64**2)),
        ("lower_triangular", "lower_triangular", 65 * 66 / (6 * 64**2)),
        ("lower_triangular", "upper_triangular", 65 * 129 / (6 * 64**2)),
        ("upper_triangular", "real", 65 / 128),
        ("symmetric", "symmetric", 1),
    ])  # fmt: skip
    def test_structure_of_the_inputs_is_read_from_the_domain(self, analysed, a, b, share):
        analysis = analysed("return x @ y", "torch.rand(64, 64), torch.rand(64, 64)", arguments="x, y",
                            more=f"DOMAIN = {{'x': {a!r}, 'y': {b!r}}}")  # fmt: skip
        assert least(analysis) == pytest.approx(share)
        half = 64 * 65 // 2 * 4
        assert analysis.least.reads == half + (64 * 64 * 4 if b == "real" else half)
        assert analysis.direct.reads == 2 * 64 * 64 * 4

    def test_products_of_an_enumeration(self):
        """The closed forms above, counted one by one for 64 x 64."""
        n = range(64)
        assert sum(k >= i and j >= k for i in n for j in n for k in n) * 6 == 64 * 65 * 66
        assert sum(k <= i and k <= j for i in n for j in n for k in n) * 6 == 64 * 65 * 129

    def test_a_triangle_of_the_result_needs_half(self, analysed):
        analysis = analysed("return (x @ y).tril()", "torch.rand(64, 8), torch.rand(8, 64)", arguments="x, y")
        assert least(analysis) == pytest.approx(65 / 128)

    def test_a_diagonal_factor_scales_rows(self, analysed):
        analysis = analysed("return torch.diag(x) @ y", "torch.rand(64), torch.rand(64, 32)", arguments="x, y")
        assert analysis.least.flops == 2 * 64 * 32 and "diagonal" in reasons(analysis)

    @pytest.mark.parametrize("masked", [
        "s.masked_fill(self.mask[:, :, :32, :32] == 0, float('-inf')).softmax(-1)",
        "s.masked_fill(self.mask[:, :, :32, :32] == 0, float('-inf')).relu()",
        "s.masked_fill(~torch.ones(32, 32, dtype=torch.bool).tril(), float('-inf')).softmax(-1)",
        "s.masked_fill(torch.ones(32, 32).triu(1).bool(), float('-inf')).softmax(-1)",
        "(s + torch.full((32, 32), float('-inf')).triu(1)).softmax(-1)",
        "torch.where(self.mask[0, 0, :32, :32] == 0, float('-inf'), s).softmax(-1)",
        "torch.where(self.mask[0, 0, :32, :32].bool(), s, float('-inf')).softmax(-1)",
    ])  # fmt: skip
    def test_a_causal_mask_leaves_half_the_scores(self, analysed, masked):
        init = 'self.register_buffer("mask", torch.tril(torch.ones(64, 64)).view(1, 1, 64, 64))'
        body = f"s = (q @ k.transpose(-2, -1)) * 0.5\n        return {masked} @ v"
        heads = ", ".join(["torch.rand(2, 3, 32, 16)"] * 3)
        analysis = analysed(body, heads, init, arguments="q, k, v")
        assert least(analysis) == pytest.approx(33 / 64)
        assert analysis.direct.reads == 3 * 2 * 3 * 32 * 16 * 4

    def test_causal_attention_of_pytorch_too(self, analysed):
        body = "return F.scaled_dot_product_attention(q, k, v, is_causal=True)"
        analysis = analysed(body, ", ".join(["torch.rand(2, 3, 32, 16)"] * 3), arguments="q, k, v")
        assert least(analysis) == pytest.approx(33 / 64)

    @pytest.mark.parametrize("body", [
        "y = x.max(1, keepdim=True).values\n        return F.gelu(y - y.mean(1, keepdim=True))",
        "return F.dropout(torch.clamp(torch.clamp(x, max=0.0), 0.0, 1.0), 0.5)",
        "return torch.softmax(x.sum(1, keepdim=True), 1)",
    ])  # fmt: skip
    def test_a_constant_output_needs_only_to_be_written(self, analysed, body):
        analysis = analysed(body, "torch.rand(64, 64)")
        assert analysis.direct.reads == 0 and analysis.direct.flops == 0 and analysis.direct.writes > 0

    @pytest.mark.parametrize("body", [
        "y = x.max(1, keepdim=True).values\n        return y - x.mean(1, keepdim=True)",
        "return torch.clamp(torch.clamp(x, max=0.5), 0.0, 1.0)",
        "y = torch.zeros(64, 64)\n        y[0] = x[0]\n        return y * 1",
        "y = x[:, :1].clone()\n        w = y.sum(1, keepdim=True)\n"
        "        y.mul_(2)\n        return y.sum(1, keepdim=True) - w",
    ])  # fmt: skip
    def test_what_only_looks_constant_is_computed(self, analysed, body):
        assert analysed(body, "torch.rand(64, 64)").direct.reads > 0

    def test_an_unknown_operator_counts_nothing_and_is_named(self, analysed):
        analysis = analysed("return torch.special.bessel_j0(x)", "torch.rand(100)")
        assert (
            analysis.unknown == ("special_bessel_j0",) and analysis.direct.flops == 0 and analysis.direct.bytes == 800
        )

    def test_the_direct_bound_takes_no_discount(self, analysed):
        analysis = analysed("return (x @ self.w).sum(1)", "torch.rand(8, 32)", weights(32, 16))
        assert analysis.direct.contraction == 2 * 8 * 32 * 16 > analysis.least.flops


class TestHardware:
    def test_the_floor_takes_the_highest_clock(self):
        assert H100.floor_tflops == pytest.approx(989.4 * 1980 / 1830)

    def test_the_floor_takes_the_larger_bandwidth(self):
        assert H100.max_gbps == pytest.approx(2619e6 * 5120 / 8 * 2 / 1e9) and H100.max_gbps > H100.gbps
        assert all(limits.gbps <= limits.max_gbps < 1.03 * limits.gbps for limits in DEVICES.values())

    @pytest.mark.parametrize("name", ["rtx-4090", "rtx-5090", "a10g"])
    def test_fp16_sums_are_quicker_on_some(self, name, analysed):
        limits = limits_of(name)
        assert limits.floor_tflops >= limits.fp16_accumulate > limits.fp16
        product = analysed("return x @ self.w", "torch.rand(1024, 1024)", weights(1024, 1024))
        assert speed_of_light(product, limits, fp16=True).peak_tflops == pytest.approx(limits.fp16)

    def test_peaks_follow_the_sm_clock_and_bandwidth_the_memory_clock(self, analysed):
        analysis = analysed("return x @ self.w", "torch.rand(64, 64)", weights(64, 64))
        slow = speed_of_light(analysis, H100, sm_mhz=990, memory_mhz=2619 / 2)
        fast = speed_of_light(analysis, H100)
        assert slow.compute_ms == pytest.approx(2 * fast.compute_ms)
        assert slow.memory_ms == pytest.approx(2 * fast.memory_ms)

    def test_a_card_may_boost_beyond_the_clock_that_it_is_rated_at(self, analysed):
        analysis, card = analysed("return x @ self.w", "torch.rand(64, 64)", weights(64, 64)), limits_of("rtx-4090")
        assert speed_of_light(analysis, card).peak_tflops == card.tf32
        assert speed_of_light(analysis, card, sm_mhz=card.max_mhz).peak_tflops == pytest.approx(82.6 * 3105 / 2520)

    def test_without_tf32_fp32_is_done_on_cuda_cores(self, analysed):
        analysis = analysed("return x @ self.w", "torch.rand(64, 64)", weights(64, 64))
        bound = speed_of_light(analysis, limits_of("t4"))
        assert bound.peak_type == "FP32 CUDA cores" and bound.peak_tflops == 8.1

    def test_elementwise_work_is_done_on_cuda_cores(self, analysed):
        analysis = analysed("return x.tanh()", "torch.rand(1000)")
        assert speed_of_light(analysis, H100).peak_type == "FP32 CUDA cores"
        assert speed_of_light(analysis, H100, fp16=True) == speed_of_light(analysis, H100)

    def test_a_launch_costs_nothing(self, analysed):
        analysis = analysed("return x + 1", "torch.rand(1)")
        assert speed_of_light(analysis, H100).ms < 1e-5 and floor(analysis, H100).ms < 1e-5

    def test_the_floor_is_below_the_guidance_for_every_device(self, analysed):
        analysis = analysed("return F.conv2d(x, self.w).relu()", "torch.rand(8, 64, 99, 99)", weights(64, 64, 3, 3))
        for limits in DEVICES.values():
            assert floor(analysis, limits).ms <= speed_of_light(analysis, limits, fp16=True).ms

    def test_devices_are_known_by_the_drivers_name(self):
        assert limits_of_product("NVIDIA H100 80GB HBM3") is H100
        assert limits_of_product("NVIDIA GeForce GTX 1080") is None

    def test_an_unknown_device_is_an_error_that_names_the_known_ones(self):
        with pytest.raises(UnknownDevice, match="h100-sxm"):
            limits_of("h100")
        with pytest.raises(UnknownDevice, match="no limits are known for"):
            limits_at_hand(torch.device("cpu"))

    @pytest.mark.gpu
    def test_a_device_at_hand_is_asked(self):
        limits = limits_at_hand(torch.device("cuda", 0))
        properties = torch.cuda.get_device_properties(0)
        assert limits.multiprocessors == properties.multi_processor_count
        assert limits.l2_bytes == properties.L2_cache_size and limits.max_mhz > 1000
