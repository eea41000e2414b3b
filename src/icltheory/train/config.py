"""What a training is: its data, its model, its optimisation. Frozen values, which need no PyTorch."""

import hashlib
import json
import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast, get_args

from icltheory.points import Point, one_whole
from icltheory.prompts.kernels import Kernel
from icltheory.prompts.sampling import ASSIGNMENTS, Assignment
from icltheory.prompts.tasks import TaskLaw, check_law

ModelName = Literal["reduced", "linear", "softmax", "softmax-mlp", "blocks", "gpt2", "own"]
Layout = Literal["pairs", "interleaved"]
ConventionName = Literal["scaled", "unscaled"]
QueryLaw = Literal["independent", "next"]
Optimizer = Literal["adamw", "sgd"]
Schedule = Literal["constant", "cosine", "one-cycle"]
Select = Literal["last", "best"]

RECIPE = (
    1  # to be raised whenever the same configuration comes to give other numbers: stored runs are then trained anew
)


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    """Raise an error if a value is not one of those allowed."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {allowed}, got {value!r}")


@dataclass(frozen=True, kw_only=True)
class Data:
    r"""In-context linear regression, as in `icltheory.prompts.stream_prompts`, and how it is given to a model.

    Ratios may be given in place of sizes; they are rounded, and the sizes kept.

    Attributes
    ----------
    d : int
        Token dimension.
    context_length : int
        l, labelled tokens in a prompt, without the query; or alpha = l/d.
    n_sequences : int or None
        n, the pretraining sequences of a fixed data set, seen again and again; or tau = n/d^2. None, the default: fresh
        sequences at every step.
    n_tasks : int or math.inf
        k, the pretraining tasks; or kappa = k/d. The default, inf: a fresh task for every sequence.
    rho : float
        Label-noise variance (the signal variance is 1).
    tasks : {"sphere", "gaussian"}
        Law of the tasks.
    assignment : {"random", "balanced"}
        How a fixed data set distributes its tasks.
    xi, gamma : float or None
        Correlated tokens: correlation length of an exponential kernel, or exponent of a power law.
    query : {"independent", "next"}
        Whether the query continues the chain of tokens.
    layout : {"pairs", "interleaved"}
        A token (x_i, y_i) for every example and (x, 0) for the query; or tokens (0, x_i) and (y_i, 0) in turn.
        Attention of one layer has pairs.
    loss : {"query", "all"}
        Whether the loss is that of the query's label, or the mean over the labels of all tokens, each predicted from
        those before (which needs the interleaved layout).
    convention : {"scaled", "unscaled"}
        What the model is given: x ~ N(0, I/d), or sqrt(d) times x and y. Losses and errors are for x ~ N(0, I/d), in
        units of the signal variance, always.
    """

    d: int
    context_length: int | None = None
    alpha: float | None = None
    n_sequences: int | None = None
    tau: float | None = None
    n_tasks: float | None = None
    kappa: float | None = None
    rho: float
    tasks: TaskLaw = "sphere"
    assignment: Assignment = "random"
    xi: float | None = None
    gamma: float | None = None
    query: QueryLaw = "independent"
    layout: Layout = "pairs"
    loss: Literal["query", "all"] = "query"
    convention: ConventionName = "scaled"

    def __post_init__(self) -> None:
        fixed = self.n_sequences is not None or self.tau is not None
        endless = self.n_tasks is None and self.kappa is None
        point = Point.of(
            d=self.d,
            tau=self.tau,
            alpha=self.alpha,
            kappa=self.kappa,
            rho=self.rho,
            context_length=self.context_length,
            n_sequences=self.n_sequences if fixed else 1,
            n_tasks=math.inf if endless else self.n_tasks,
        )
        check_law(self.tasks)
        choice("assignment", self.assignment, ASSIGNMENTS)
        choice("query", self.query, get_args(QueryLaw))
        choice("layout", self.layout, get_args(Layout))
        choice("loss", self.loss, ("query", "all"))
        choice("convention", self.convention, get_args(ConventionName))
        if self.loss == "all" and self.layout != "interleaved":
            raise ValueError('loss="all" needs layout="interleaved": a token (x, y) holds the label to be predicted')
        if self.xi is not None and self.gamma is not None:
            raise ValueError(f"give xi or gamma, not both (got xi={self.xi} and gamma={self.gamma})")
        sizes = {
            "context_length": point.context_length,
            "alpha": None,
            "n_sequences": point.n_sequences if fixed else None,
            "tau": None,
            "n_tasks": point.n_tasks,
            "kappa": None,
        }
        for name, value in sizes.items():
            object.__setattr__(self, name, value)
        if self.query == "next" and self.kernel is None:
            raise ValueError('query="next" needs correlated tokens: give xi or gamma')

    @property
    def length(self) -> int:
        """The context length as an integer."""
        return cast(int, self.context_length)

    @property
    def kernel(self) -> Kernel | None:
        """Correlations of the tokens; None if they are independent."""
        if self.xi is not None:
            return Kernel.exponential(self.xi, self.length)
        return None if self.gamma is None else Kernel.power_law(self.gamma, self.length)

    def point(self) -> Point:
        """Return the sizes and ratios of a fixed data set."""
        if self.n_sequences is None:
            raise ValueError("fresh sequences have no n_sequences: there is no point of the theory")
        return Point.of(
            d=self.d,
            context_length=self.length,
            n_sequences=self.n_sequences,
            n_tasks=self.n_tasks,
            rho=self.rho,
        )


@dataclass(frozen=True, kw_only=True)
class Model:
    r"""Which model is trained.

    Attributes
    ----------
    name : str
        "reduced": linear attention as :math:`\langle\Gamma, H\rangle`; "linear": linear attention with K, Q, V;
        "softmax": softmax attention with K, Q, V; "softmax-mlp": the same followed by an MLP; "blocks": read-in, causal
        softmax blocks and readout, as in Fig. 5 of Lu et al. 2025; "gpt2": a GPT-2 style decoder; "own": one that is
        given to `icltheory.train.train` as a module.
    width : int or None
        Of blocks and gpt2; default d.
    layers : int
        Blocks, of blocks and gpt2.
    heads : int
        Attention heads, of blocks and gpt2.
    mlp_ratio : float
        Hidden units of the MLP per unit of width: of softmax-mlp, of blocks (0: attention alone; None there: one dense
        layer, as the paper has it) and of gpt2.
    init_scale : float
        Factor on the initial weights of reduced, linear, softmax and softmax-mlp.
    """

    name: ModelName = "linear"
    width: int | None = None
    layers: int = 1
    heads: int = 1
    mlp_ratio: float | None = None
    init_scale: float = 1.0

    def __post_init__(self) -> None:
        choice("name", self.name, get_args(ModelName))
        if self.width is not None:
            one_whole("width", self.width, "hidden units of a token")
        one_whole("layers", self.layers, "blocks")
        one_whole("heads", self.heads, "attention heads")
        if self.width is not None and self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads, got width={self.width} and heads={self.heads}")
        if self.mlp_ratio is not None and not 0 <= self.mlp_ratio < math.inf:
            raise ValueError(f"mlp_ratio must be >= 0 and finite, got {self.mlp_ratio}")
        if not 0 < self.init_scale < math.inf:
            raise ValueError(f"init_scale must be > 0 and finite, got {self.init_scale}")
        if self.layers > 1 and self.name not in ("blocks", "gpt2"):
            raise ValueError(f'{self.name} has one layer, got layers={self.layers}; "blocks" and "gpt2" have more')


@dataclass(frozen=True, kw_only=True)
class Optimization:
    """How a model is trained.

    Attributes
    ----------
    steps : int
        Gradient steps.
    batch_size : int
        Sequences of a step (at most n).
    optimizer : {"adamw", "sgd"}
    learning_rate : float
        At its peak.
    schedule : {"constant", "cosine", "one-cycle"}
        After the warm-up: constant, half a cosine down to zero, or straight down to zero. One-cycle warms up for at
        least three tenths of the steps.
    warmup : int
        Steps in which the learning rate rises from zero, linearly.
    momentum : float
        Of sgd.
    weight_decay : float
        Decoupled, per unit of learning rate.
    clip : float or None
        Largest norm of the gradient.
    evaluate_every : int or None
        Steps between evaluations on the validation set; default a twentieth of the steps.
    validation : int
        Prompts of the validation set: fresh tokens on the pretraining tasks, apart from training and test. 0: none.
    patience : int or None
        Stop after so many evaluations in a row without a new least validation error.
    select : {"last", "best"}
        The weights that are kept: the last ones, or those of the least validation error.
    stop_at : float or None
        Stop when the training error of the whole fixed data set, looked at with every evaluation, is below this.
    checkpoint_every : int or None
        Steps between checkpoints; default with every evaluation.
    """

    steps: int = 10_000
    batch_size: int = 256
    optimizer: Optimizer = "adamw"
    learning_rate: float = 1e-3
    schedule: Schedule = "one-cycle"
    warmup: int = 0
    momentum: float = 0.9
    weight_decay: float = 0.0
    clip: float | None = 1.0
    evaluate_every: int | None = None
    validation: int = 1000
    patience: int | None = None
    select: Select = "last"
    stop_at: float | None = None
    checkpoint_every: int | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size"):
            one_whole(name, getattr(self, name), name.replace("_", " "))
        for name in ("evaluate_every", "patience", "checkpoint_every"):
            if getattr(self, name) is not None:
                one_whole(name, getattr(self, name), name.replace("_", " "))
        choice("optimizer", self.optimizer, get_args(Optimizer))
        choice("schedule", self.schedule, get_args(Schedule))
        choice("select", self.select, get_args(Select))
        for name, positive in {
            "learning_rate": True,
            "warmup": False,
            "momentum": False,
            "weight_decay": False,
            "clip": True,
            "validation": False,
            "stop_at": True,
        }.items():
            value = getattr(self, name)
            if value is not None and not (0 < value < math.inf if positive else 0 <= value < math.inf):
                raise ValueError(f"{name} must be {'> 0' if positive else '>= 0'} and finite, got {value}")
        if self.warmup >= self.steps and self.warmup:
            raise ValueError(f"warmup must be less than steps, got warmup={self.warmup} and steps={self.steps}")
        if not self.validation and (self.patience is not None or self.select == "best"):
            raise ValueError('patience and select="best" need a validation set, got validation=0')

    @property
    def evaluations(self) -> int:
        """Steps between evaluations."""
        return self.evaluate_every or max(1, self.steps // 20)

    @property
    def checkpoints(self) -> int:
        """Steps between checkpoints."""
        return self.checkpoint_every or self.evaluations


@dataclass(frozen=True, kw_only=True)
class Training:
    """A whole training: what `icltheory.train.train` takes, and what names it in a store.

    Attributes
    ----------
    data : Data
    model : Model
    optimization : Optimization
    test : int
        Prompts of each test: fresh tasks, and fresh tokens on the pretraining tasks.
    dtype : {"float32", "float64"}
        Of weights and data.
    seed : int
        Of the data (the tasks are those of ``simulate.linear_attention`` at this seed), the initial weights and the
        order of the batches.
    init_seed : int or None
        Of the initial weights and the order alone; default the seed.
    """

    data: Data
    model: Model = Model()
    optimization: Optimization = Optimization()
    test: int = 10_000
    dtype: Literal["float32", "float64"] = "float32"
    seed: int = 0
    init_seed: int | None = None

    def __post_init__(self) -> None:
        one_whole("test", self.test, "test prompts")
        choice("dtype", self.dtype, ("float32", "float64"))
        for name in ("seed", "init_seed"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 0):
                raise ValueError(f"{name} must be an integer of at least 0, got {value!r}")
        pairwise = self.model.name not in ("gpt2", "own")
        if pairwise and self.data.layout != "pairs":
            raise ValueError(f'{self.model.name} needs layout="pairs", got "{self.data.layout}"')
        if self.optimization.stop_at is not None and self.data.n_sequences is None:
            raise ValueError("stop_at needs a fixed data set: give n_sequences or tau")

    def key(self) -> str:
        """Return what names this training among all: a digest of all that bears on its numbers."""
        return digest({"recipe": RECIPE, **asdict(self)})


def digest(content: Any) -> str:
    """Return 20 hexadecimal digits that name plain content, such as ``asdict`` of a frozen dataclass."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]


def from_plain(plain: dict[str, Any]) -> Training:
    """Return the training of which `plain` is ``asdict``, or what training.json has of it, with "inf" for infinity."""
    parts = {"data": Data, "model": Model, "optimization": Optimization}
    if plain["data"].get("n_tasks") == "inf":
        plain = plain | {"data": plain["data"] | {"n_tasks": math.inf}}
    return Training(**{name: parts[name](**value) if name in parts else value for name, value in plain.items()})
