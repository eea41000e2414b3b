"""Models: slow twins from their equations, identities, and Hugging Face's GPT-2."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import icltheory as icl  # noqa: E402
from icltheory.train import (  # noqa: E402
    Blocks,
    Data,
    Decoder,
    Embedded,
    LinearAttention,
    Model,
    Optimization,
    ReducedAttention,
    SoftmaxAttention,
    Training,
    build,
    train,
)
from icltheory.train.models.blocks import Block  # noqa: E402
from icltheory.train.models.tokens import interleaved, pairs  # noqa: E402

SIZES = pytest.mark.parametrize(("b", "length", "d"), [(3, 7, 4), (1, 1, 2), (5, 12, 1)])


def prompts(b, length, d, seed=0):
    rng = np.random.default_rng(seed)
    shapes = ((b, length, d), (b, length), (b, d))
    return tuple(torch.from_numpy(rng.standard_normal(shape)) for shape in shapes)


def columns(x, y, query):
    """Z of the paper, one prompt after the other."""
    b, length, d = x.shape
    z = np.zeros((b, d + 1, length + 1))
    for i in range(b):
        for j in range(length):
            z[i, :d, j] = x[i, j]
            z[i, d, j] = y[i, j]
        z[i, :d, length] = query[i]
    return z


def weights(model):
    return {name: p.detach().numpy() for name, p in model.named_parameters()}


@SIZES
def test_linear_attention_is_the_bottom_right_entry_of_the_whole_matrix(b, length, d):
    model = LinearAttention(d).double()
    w = weights(model)
    expected = []
    for z in columns(*prompts(b, length, d)):
        a = z + w["value"] @ z @ (w["key"] @ z).T @ (w["query"] @ z) / length
        expected.append(a[-1, -1])
    with torch.no_grad():
        np.testing.assert_allclose(model(*prompts(b, length, d)), expected, rtol=1e-11)


@SIZES
def test_linear_attention_without_v21_is_the_reduced_model(b, length, d):
    full, reduced = LinearAttention(d).double(), ReducedAttention(d).double()
    with torch.no_grad():
        full.value[-1, :d] = 0.0
        m = full.key.T @ full.query
        reduced.gamma.copy_(full.value[-1, -1] * torch.cat([m[:d, :d].T / d, m[d:, :d].T], dim=1))
        np.testing.assert_allclose(full(*prompts(b, length, d)), reduced(*prompts(b, length, d)), rtol=1e-11)
        full.value[-1, 0] = 1.0
        assert not np.allclose(full(*prompts(b, length, d)), reduced(*prompts(b, length, d)), rtol=1e-3)


def test_the_reduced_model_is_what_the_simulation_fits():
    d, length = 4, 9
    x, y, query = prompts(6, length, d)
    gamma = np.random.default_rng(1).standard_normal((d, d + 1))
    model = ReducedAttention(d).double()
    with torch.no_grad():
        model.gamma.copy_(torch.from_numpy(gamma))
        expected = icl.probing.linear_attention(gamma)(x.numpy(), y.numpy(), query.numpy())
        np.testing.assert_allclose(model(x, y, query), np.asarray(expected).reshape(6, -1)[:, -1], rtol=1e-11)


@SIZES
@pytest.mark.parametrize("ratio", [None, 1.0, 4.0])
def test_softmax_attention_is_the_bottom_right_entry_of_the_whole_matrix(b, length, d, ratio):
    model = SoftmaxAttention(d, mlp_ratio=ratio).double()
    w = weights(model)
    expected = []
    for z in columns(*prompts(b, length, d)):
        scores = np.exp((w["key"] @ z).T @ (w["query"] @ z) / math.sqrt(d + 1))
        a = z + w["value"] @ z @ (scores / scores.sum(0))
        out = a[:, -1]
        if ratio is not None:
            hidden = w["mlp.0.weight"] @ out + w["mlp.0.bias"]
            assert len(hidden) == ratio * (d + 1)
            gelu = np.array([h * 0.5 * (1.0 + math.erf(h / math.sqrt(2.0))) for h in hidden])
            out = out + w["mlp.2.weight"] @ gelu + w["mlp.2.bias"]
        expected.append(out[-1])
    with torch.no_grad():
        np.testing.assert_allclose(model(*prompts(b, length, d)), expected, rtol=1e-11)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("ratio", [None, 0.0, 2.0])
def test_a_block_is_causal_and_its_last_row_alone_is_the_same(heads, ratio):
    block = Block(6, heads=heads, mlp_ratio=ratio).double()
    h = torch.randn(2, 5, 6, dtype=torch.float64)
    later = h.clone()
    later[:, 3:] += 1.0
    with torch.no_grad():
        np.testing.assert_allclose(block(h)[:, -1:], block(h, last=True), rtol=1e-10)
        np.testing.assert_allclose(block(h)[:, :3], block(later)[:, :3], rtol=1e-10)
        assert not np.allclose(block(h)[:, 3], block(later)[:, 3])


def test_a_block_against_its_equations():
    block = Block(4, heads=2, mlp_ratio=None).double()
    w = weights(block)
    h = torch.randn(1, 3, 4, dtype=torch.float64)
    z = h[0].numpy()

    def norm(v, i):
        return (v - v.mean()) / math.sqrt(v.var() + 1e-5) * w[f"norms.{i}.weight"] + w[f"norms.{i}.bias"]

    expected = []
    for t in range(3):
        mixed = np.zeros(4)
        for head in (slice(0, 2), slice(2, 4)):
            q = (w["queries.weight"] @ z[t])[head]
            scores = np.exp([q @ (w["keys.weight"] @ z[s])[head] / math.sqrt(2.0) for s in range(t + 1)])
            for s in range(t + 1):
                mixed[head] += scores[s] / scores.sum() * (w["values.weight"] @ z[s])[head]
        a = norm(z[t] + w["out.weight"] @ mixed, 0)
        hidden = w["dense.0.weight"] @ a + w["dense.0.bias"]
        expected.append(norm(a + [v * 0.5 * (1.0 + math.erf(v / math.sqrt(2.0))) for v in hidden], 1))
    with torch.no_grad():
        np.testing.assert_allclose(block(h)[0], expected, rtol=1e-10)


@pytest.mark.filterwarnings("ignore")
def test_the_decoder_is_hugging_faces_gpt2():
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    theirs = gpt2(transformers, positions=9, width=12, layers=3, heads=2).double()
    ours = Decoder(9, width=12, layers=3, heads=2).double()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # biases and norms too
        ours.positions.copy_(theirs.wpe.weight)
        copy(ours.norm, theirs.ln_f)
        for mine, other in zip(ours.blocks, theirs.h, strict=True):
            copy(mine.norm1, other.ln_1)
            copy(mine.norm2, other.ln_2)
            for one, two in (
                (mine.project, other.attn.c_attn),
                (mine.out, other.attn.c_proj),
                (mine.rise, other.mlp.c_fc),
                (mine.fall, other.mlp.c_proj),
            ):
                one.weight.copy_(two.weight.T)
                one.bias.copy_(two.bias)
        h = torch.randn(2, 9, 12, dtype=torch.float64)
        difference = (ours(h) - theirs(inputs_embeds=h).last_hidden_state).abs().max()
    assert difference < 1e-6


def copy(mine, other):
    mine.weight.copy_(other.weight)
    mine.bias.copy_(other.bias)


def gpt2(transformers, *, positions, width, layers, heads):
    config = transformers.GPT2Config(
        vocab_size=1,
        n_positions=positions,
        n_embd=width,
        n_layer=layers,
        n_head=heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=None,
        eos_token_id=None,
    )
    return transformers.GPT2Model(config).eval()


@pytest.mark.filterwarnings("ignore")
def test_a_module_of_others_that_takes_inputs_embeds_is_trained_and_probed():
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    body = gpt2(transformers, positions=9, width=8, layers=1, heads=2)
    model = Embedded(body, d=3, width=8, layout="interleaved", every=True)
    data = Data(d=3, context_length=4, kappa=2.0, rho=0.1, layout="interleaved", loss="all")
    before = body.wpe.weight.detach().clone()
    asked = Training(data=data, model=Model(name="own"), optimization=Optimization(steps=20, batch_size=8), test=20)
    trained = train(asked, model=model)
    assert trained.model is model
    assert not torch.equal(before, body.wpe.weight)
    found = icl.probe(model, d=3, context_length=4, kappa=2.0, rho=0.1, rng=0, n_prompts=40)
    assert np.shape(found.icl.error.value) == (5,)


def test_layouts():
    x, y, query = (part[0].numpy() for part in prompts(1, 2, 3))
    one = pairs(*prompts(1, 2, 3))[0].numpy()
    np.testing.assert_array_equal(one, [[*x[0], y[0]], [*x[1], y[1]], [*query, 0.0]])
    two = interleaved(*prompts(1, 2, 3))[0].numpy()
    zero = [0.0] * 3
    np.testing.assert_array_equal(two, [[0.0, *x[0]], [y[0], *zero], [0.0, *x[1]], [y[1], *zero], [0.0, *query]])


def test_predictions_of_every_label_see_what_came_before_alone():
    model = Embedded(Decoder(11, width=8, layers=2, heads=2), d=3, width=8, layout="interleaved", every=True).double()
    x, y, query = prompts(2, 5, 3)
    changed = y.clone()
    changed[:, 2] += 1.0
    with torch.no_grad():
        before, after = model(x, y, query), model(x, changed, query)
    assert before.shape == (2, 6)
    assert torch.equal(before[:, :3], after[:, :3])  # entry m is predicted from the first m examples
    assert (before[:, 3:] != after[:, 3:]).all()


def test_errors_say_what_is_wrong():
    with pytest.raises(ValueError, match="positions for 4 tokens, got 5"):
        Decoder(4, width=4, layers=1, heads=1)(torch.zeros(1, 5, 4))
    with pytest.raises(ValueError, match='needs layout="interleaved"'):
        Embedded(torch.nn.Identity(), d=2, width=2, every=True)


@pytest.mark.parametrize(
    "model",
    [
        Model(name="reduced"),
        Model(name="linear", init_scale=0.5),
        Model(name="softmax"),
        Model(name="softmax-mlp", mlp_ratio=4.0),
        Model(name="blocks", width=8, layers=2, heads=2),
        Model(name="gpt2", width=8, layers=2, heads=2),
    ],
)
def test_every_model_is_built_and_predicts(model):
    data = Data(d=3, context_length=4, rho=0.1)
    with torch.no_grad():
        answer = build(model, data).double()(*prompts(2, 4, 3))
    assert answer.shape == (2,)
    assert torch.isfinite(answer).all()


def test_blocks_of_the_papers_width():
    assert Blocks(5).read_in.weight.shape == (5, 6)
