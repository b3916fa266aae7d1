#include <string_view>
#include <type_traits>
#include <variant>

#include "optim/cuda/arena.hpp"
#include "optim/cuda/device_rule.hpp"
#include "optim/cuda/octets.hpp"

namespace lockstep::optim::cuda {
namespace {

/// One block: its first thread decides about the step, then each thread computes the numbers of some ranges.
template <class R>
struct Prepare {
  static constexpr int max_threads = 256;
  const core::StepNumbers* step;
  StepState* state;
  const PieceRange* ranges;
  std::uint32_t n_ranges;
  const double* squares;
  std::uint32_t n_squares;
  OptimizerSpec spec;
  double max_norm;
  LossScaling scaling;
  typename R::Numbers* numbers;

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    const auto n_threads = static_cast<std::uint32_t>(team.n_threads());
    auto sums = team.per_thread(0.0);
    team.each([&](int thread) {
      for (auto i = static_cast<std::uint32_t>(thread); i < n_squares; i += n_threads) sums[thread] += squares[i];
    });
    const double total = team.sum(sums);
    team.each([&](int thread) {
      if (thread == 0) begin_step(*state, *step, scaling, total, max_norm);
    });
    if (state->skips != 0) return;
    team.each([&](int thread) {
      for (auto i = static_cast<std::uint32_t>(thread); i < n_ranges; i += n_threads)
        numbers[i] =
            R::numbers({.spec = spec, .decays = ranges[i].decays, .lr = step->learning_rate, .step = state->n_steps});
    });
  }
};

template <class R>
struct Adapt {
  const core::StepNumbers* step;
  const StepState* state;
  const PieceRange* ranges;
  OptimizerSpec spec;
  const double* parameter;
  const double* update;
  typename R::Numbers* numbers;

  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    if (state->skips != 0) return;
    optim::SquaredNorms norms{parameter[i], update[i]};
    if constexpr (R::norms == Norms::of_gradient) {
      const auto scale = static_cast<double>(state->factor);
      norms.update = norms.update * scale * scale;
    }
    numbers[i].rate = static_cast<float>(
        R::rate({.spec = spec, .decays = ranges[i].decays, .lr = step->learning_rate, .step = state->n_steps}, norms));
  }
};

/// The first pass. The square of a float32 is exact in double.
template <class R, class G>
struct Measure {
  static_assert(n_states<R> == 2);
  static constexpr int max_threads = 256;
  const StepState* done;
  const typename R::Numbers* numbers;
  const BlockPiece* pieces;
  std::uint32_t n_pieces;
  const G* gradient;
  const float* parameters;
  float* state[2];
  double* parameter_squares;
  double* update_squares;

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    if (done->skips != 0) return;
    const float factor = done->factor;
    for (std::uint32_t i = team.block(); i < n_pieces; i += team.n_blocks()) {
      const BlockPiece piece = pieces[i];
      const typename R::Numbers s = numbers[piece.range];
      auto of_parameter = team.per_thread(0.0);
      auto of_update = team.per_thread(0.0);
      team.each([&](int thread) {
        each_octet(team, thread, piece,
                   [&](std::size_t at) { measure(at, factor, s, of_parameter[thread], of_update[thread]); });
      });
      const double parameter = team.sum(of_parameter);
      const double update = team.sum(of_update);
      team.each([&](int thread) {
        if (thread != 0) return;
        parameter_squares[i] = parameter;
        update_squares[i] = update;
      });
    }
  }

  LOCKSTEP_HOST_DEVICE void measure(std::size_t at, float factor, const typename R::Numbers& s, double& of_parameter,
                                    double& of_update) const {
    const auto g = kernel::load_once<G, octet>(gradient, at);
    const auto p = kernel::load_once<float, octet>(parameters, at);
    auto first = kernel::load_once<float, octet>(state[0], at);
    auto second = kernel::load_once<float, octet>(state[1], at);
    for (int j = 0; j < octet; ++j) {
      const double update = R::measure(kernel::to_float(g[j]) * factor, p[j], first[j], second[j], s);
      const double parameter = p[j];
      of_parameter += parameter * parameter;
      of_update += update * update;
    }
    kernel::store_once(state[0], at, first);
    kernel::store_once(state[1], at, second);
  }
};

/// The last pass: memory is read and written 16 bytes at a time, each array once; a thread has two such packs of every
/// float32 array in flight.
template <class R, class G, class C>
struct Update {
  static constexpr bool is_second = R::norms == Norms::of_update;  ///< reads no gradient, writes no state
  static constexpr int max_threads = 1024;  // the compiler then uses at most 64 registers, so four blocks fit
  // For rules with few states the compiler would use 32 registers, which makes LARS 1.6 times as slow and SGD 2 %
  // slower (H200). With min_blocks 1 it uses as many as it needs. Rules with two states have enough, and LAMB would
  // lose 4 %.
  static constexpr unsigned min_blocks = n_states<R> < 2 ? 1 : 0;
  const StepState* done;
  const typename R::Numbers* numbers;
  const BlockPiece* pieces;
  std::uint32_t n_pieces;
  const G* gradient;
  float* parameters;
  float* state[2];
  C* copy;  ///< or null

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    if (done->skips != 0) return;
    const float factor = done->factor;
    team.each([&](int thread) {
      for (std::uint32_t i = team.block(); i < n_pieces; i += team.n_blocks()) {
        const BlockPiece piece = pieces[i];
        const typename R::Numbers s = numbers[piece.range];
        each_octet(team, thread, piece, [&](std::size_t at) { update(at, factor, s); });
      }
    });
  }

  LOCKSTEP_HOST_DEVICE void update(std::size_t at, float factor, const typename R::Numbers& s) const {
    using Floats = kernel::Pack<float, octet>;
    kernel::Pack<G, octet> g{};
    Floats states[2]{};
    if constexpr (!is_second) g = kernel::load_once<G, octet>(gradient, at);
    Floats p = kernel::load_once<float, octet>(parameters, at);
    for (int k = 0; k < n_states<R>; ++k) states[k] = kernel::load_once<float, octet>(state[k], at);
    for (int j = 0; j < octet; ++j) step(kernel::to_float(g[j]) * factor, p[j], states[0][j], states[1][j], s);
    for (int k = 0; !is_second && k < n_states<R>; ++k) kernel::store_once(state[k], at, states[k]);
    kernel::store_once(parameters, at, p);
    if (copy == nullptr) return;
    kernel::Pack<C, octet> rounded;
    for (int j = 0; j < octet; ++j) rounded[j] = kernel::round_to<C>(p[j]);
    kernel::store(copy, at, rounded);
  }

  LOCKSTEP_HOST_DEVICE static void step(float g, float& p, float& first, float& second, const typename R::Numbers& s) {
    if constexpr (is_second)
      R::step(p, first, second, s);
    else if constexpr (n_states<R> == 0)
      R::step(g, p, s);
    else if constexpr (n_states<R> == 1)
      R::step(g, p, first, s);
    else
      R::step(g, p, first, second, s);
  }
};

template <class R>
[[nodiscard]] DeviceSpan<typename R::Numbers> numbers_of(DeviceSpan<std::byte> bytes) {
  using Numbers = typename R::Numbers;
  return DeviceSpan<Numbers>::at(reinterpret_cast<Numbers*>(bytes.data()), bytes.size() / sizeof(Numbers));
}

template <class R>
void prepare(Stream& stream, const Preparation& of, DeviceSpan<std::byte> numbers) {
  const auto typed = numbers_of<R>(numbers);
  core::require(typed.size() == of.ranges.size(), "every range has its numbers");
  const Prepare<R> body{.step = of.step.data(),
                        .state = of.state.data(),
                        .ranges = of.ranges.data(),
                        .n_ranges = static_cast<std::uint32_t>(of.ranges.size()),
                        .squares = of.squares.data(),
                        .n_squares = static_cast<std::uint32_t>(of.squares.size()),
                        .spec = of.spec,
                        .max_norm = of.max_norm,
                        .scaling = of.scaling,
                        .numbers = typed.data()};
  kernel::enqueue(stream, "prepare", {},
                  {region_of(of.step), region_of(of.state), region_of(of.ranges), region_of(of.squares)},
                  {region_of(of.state), region_of(typed)}, body);
}

template <class R>
void adapt(Stream& stream, const Preparation& of, const Squares& by_range, DeviceSpan<std::byte> numbers) {
  const auto typed = numbers_of<R>(numbers);
  const std::size_t n = of.ranges.size();
  core::require(typed.size() == n && by_range.parameter.size() == n && by_range.update.size() == n,
                "every range has its numbers");
  kernel::for_each(stream, "adapt", n,
                   {region_of(of.step), region_of(of.state), region_of(of.ranges), region_of(by_range.parameter),
                    region_of(by_range.update), region_of(typed)},
                   {region_of(typed)},
                   Adapt<R>{of.step.data(), of.state.data(), of.ranges.data(), of.spec, by_range.parameter.data(),
                            by_range.update.data(), typed.data()});
}

template <class R>
void measure(Stream& stream, const StepArrays& step, DeviceSpan<std::byte> numbers, const Squares& by_piece) {
  const auto typed = numbers_of<R>(numbers);
  core::require(by_piece.parameter.size() == step.pieces.size() && by_piece.update.size() == step.pieces.size(),
                "there is a number for every piece");
  std::visit(
      [&]<class G>(const DeviceSpan<const G>& gradient) {
        const Measure<R, G> body{.done = step.done.data(),
                                 .numbers = typed.data(),
                                 .pieces = step.pieces.data(),
                                 .n_pieces = static_cast<std::uint32_t>(step.pieces.size()),
                                 .gradient = gradient.data(),
                                 .parameters = step.parameters.data(),
                                 .state = {step.state[0].data(), step.state[1].data()},
                                 .parameter_squares = by_piece.parameter.data(),
                                 .update_squares = by_piece.update.data()};
        kernel::enqueue(stream, "measure", grid_of_pieces(step.pieces.size()),
                        {region_of(step.done), region_of(typed), region_of(step.pieces), region_of(gradient),
                         region_of(step.parameters), region_of(step.state[0]), region_of(step.state[1])},
                        {region_of(step.state[0]), region_of(step.state[1]), region_of(by_piece.parameter),
                         region_of(by_piece.update)},
                        body);
      },
      step.gradient);
}

template <class R, class G, class C>
void update_typed(Stream& stream, std::string_view name, const StepArrays& step,
                  DeviceSpan<typename R::Numbers> numbers, DeviceSpan<const G> gradient, DeviceSpan<C> copy) {
  using Body = Update<R, G, C>;
  const Body body{.done = step.done.data(),
                  .numbers = numbers.data(),
                  .pieces = step.pieces.data(),
                  .n_pieces = static_cast<std::uint32_t>(step.pieces.size()),
                  .gradient = gradient.data(),
                  .parameters = step.parameters.data(),
                  .state = {step.state[0].data(), step.state[1].data()},
                  .copy = copy.data()};
  const kernel::Region first = region_of(step.state[0]), second = region_of(step.state[1]);
  constexpr bool is_second = Body::is_second;
  kernel::enqueue(stream, name, grid_of_pieces(step.pieces.size()),
                  {region_of(step.done), region_of(numbers), region_of(step.pieces),
                   is_second ? kernel::Region{} : region_of(gradient), region_of(step.parameters), first, second},
                  {region_of(step.parameters), region_of(copy), is_second ? kernel::Region{} : first,
                   is_second ? kernel::Region{} : second},
                  body);
}

/// Without a copy, passes null, with a type for which code exists.
template <class R, class G>
void update_from(Stream& stream, std::string_view name, const StepArrays& step, DeviceSpan<typename R::Numbers> numbers,
                 DeviceSpan<const G> gradient) {
  std::visit(
      [&]<class Wanted>(const Wanted& copy) {
        if constexpr (std::is_same_v<Wanted, std::monostate>) {
          using C = std::conditional_t<std::is_same_v<G, float>, core::bfloat16, G>;
          update_typed<R, G, C>(stream, name, step, numbers, gradient, {});
        } else {
          using C = std::remove_pointer_t<decltype(copy.data())>;
          if constexpr (std::is_same_v<G, float> || std::is_same_v<G, C>)
            update_typed<R, G, C>(stream, name, step, numbers, gradient, copy);
          else
            core::require(false, "parameters are copied in the type of a 16-bit gradient");
        }
      },
      step.copy);
}

template <class R>
void update_with(Stream& stream, std::string_view name, const StepArrays& step,
                 DeviceSpan<typename R::Numbers> numbers) {
  if constexpr (R::norms == Norms::of_update)
    update_from<R>(stream, name, step, numbers, DeviceSpan<const float>{});
  else
    std::visit([&](const auto& gradient) { update_from<R>(stream, name, step, numbers, gradient); }, step.gradient);
}

/// "sgd_momentum" beside "sgd".
template <class R>
constexpr auto name_with_momentum = [] {
  std::array<char, 32> text{};
  std::size_t n = 0;
  for (const char letter : R::description.word) text[n++] = letter;
  for (const char letter : std::string_view{"_momentum"}) text[n++] = letter;
  return text;
}();

template <class R>
void update(Stream& stream, const StepArrays& step, DeviceSpan<std::byte> numbers) {
  const auto typed = numbers_of<R>(numbers);
  using A = ArithmeticOf<R>;
  if constexpr (std::is_void_v<typename R::WithoutMomentum>)
    update_with<A>(stream, A::description.word, step, typed);
  else if (step.state[n_states<R> - 1].size() == 0)
    update_with<typename R::WithoutMomentum>(stream, R::description.word, step, typed);
  else
    update_with<A>(stream, name_with_momentum<R>.data(), step, typed);
}

constexpr auto device_rules = for_each_rule(Rules{}, []<class R>(R) {
  DeviceRule rule{.numbers_bytes = sizeof(typename R::Numbers), .prepare = &prepare<R>, .update = &update<R>};
  if constexpr (R::norms == Norms::of_update) rule.measure = &measure<R>;
  if constexpr (R::norms != Norms::none) rule.adapt = &adapt<R>;
  return rule;
});

}  // namespace

const DeviceRule& device_rule(OptimizerKind kind) noexcept { return device_rules[static_cast<std::size_t>(kind)]; }

void enqueue_step(Stream& stream, const Preparation& of, const StepArrays& step, DeviceSpan<std::byte> numbers,
                  const Squares& by_piece, const Squares& by_range) {
  const DeviceRule& rule = device_rule(of.spec.kind);
  rule.prepare(stream, of, numbers);
  if (rule.adapt != nullptr) {
    DeviceSpan<const double> of_update = of.squares;
    if (rule.measure != nullptr) {
      rule.measure(stream, step, numbers, by_piece);
      of_update = by_piece.update;
    } else {
      squared_norms(stream, DeviceSpan<const float>{step.parameters}, step.pieces, by_piece.parameter);
    }
    add_up(stream, by_piece.parameter, of.ranges, by_range.parameter);
    add_up(stream, of_update, of.ranges, by_range.update);
    rule.adapt(stream, of, by_range, numbers);
  }
  rule.update(stream, step, numbers);
}

}  // namespace lockstep::optim::cuda
