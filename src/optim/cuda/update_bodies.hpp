// The kernel of every optimizer's step; a rule says what happens to one element.
// Invariant: memory is read and written 16 bytes at a time, each array once; a thread has two such packs of every
// float32 array in flight.
// Used by the files *.cu of the optimizers.
#pragma once

#include <string_view>
#include <type_traits>
#include <variant>

#include "optim/cuda/units.hpp"
#include "optim/cuda/updates.hpp"
#include "optim/element.hpp"

namespace lockstep::optim::cuda {

/// A Rule has Numbers, n_states, reads_gradient, writes_state and step(gradient, parameter, state 0, state 1, numbers).
template <class Rule, class G, class C>
struct Update {
  static constexpr int max_threads = 1024;  // the compiler then uses at most 64 registers, so four blocks fit
  // For rules with few states the compiler would use 32 registers, which makes LARS 1.6 times as slow and SGD 2 %
  // slower (H200). With min_blocks 1 it uses as many as it needs. Rules with two states have enough, and LAMB would
  // lose 4 %.
  static constexpr unsigned min_blocks = Rule::n_states < 2 ? 1 : 0;
  const StepState* done;
  const typename Rule::Numbers* numbers;
  const Piece* pieces;
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
        const Piece piece = pieces[i];
        const typename Rule::Numbers s = numbers[piece.range];
        each_unit(team, thread, piece, [&](std::size_t at) { update(at, factor, s); });
      }
    });
  }

  LOCKSTEP_HOST_DEVICE void update(std::size_t at, float factor, const typename Rule::Numbers& s) const {
    using Floats = kernel::Pack<float, unit>;
    kernel::Pack<G, unit> g{};
    Floats states[2]{};
    if constexpr (Rule::reads_gradient) g = kernel::load_once<G, unit>(gradient, at);
    Floats p = kernel::load_once<float, unit>(parameters, at);
    for (int k = 0; k < Rule::n_states; ++k) states[k] = kernel::load_once<float, unit>(state[k], at);
    for (int j = 0; j < unit; ++j) Rule::step(kernel::to_float(g[j]) * factor, p[j], states[0][j], states[1][j], s);
    for (int k = 0; Rule::writes_state && k < Rule::n_states; ++k) kernel::store_once(state[k], at, states[k]);
    kernel::store_once(parameters, at, p);
    if (copy == nullptr) return;
    kernel::Pack<C, unit> rounded;
    for (int j = 0; j < unit; ++j) rounded[j] = kernel::round_to<C>(p[j]);
    kernel::store(copy, at, rounded);
  }
};

/// Whether a step may read gradients of type G and write copies of type C.
template <class G, class C>
inline constexpr bool is_pair = std::is_same_v<G, float> || std::is_same_v<G, C>;

template <class Rule, class G, class C>
void enqueue_typed(Stream& stream, std::string_view name, const Step& step,
                   DeviceSpan<const typename Rule::Numbers> numbers, DeviceSpan<const G> gradient, DeviceSpan<C> copy) {
  const Update<Rule, G, C> body{.done = step.done.data(),
                                .numbers = numbers.data(),
                                .pieces = step.pieces.data(),
                                .n_pieces = static_cast<std::uint32_t>(step.pieces.size()),
                                .gradient = gradient.data(),
                                .parameters = step.parameters.data(),
                                .state = {step.state[0].data(), step.state[1].data()},
                                .copy = copy.data()};
  kernel::enqueue(
      stream, name, grid_of_pieces(step.pieces.size()),
      {region_of(step.done), region_of(numbers), region_of(step.pieces),
       Rule::reads_gradient ? region_of(gradient) : kernel::Region{}, region_of(step.parameters),
       region_of(step.state[0]), region_of(step.state[1])},
      {region_of(step.parameters), region_of(copy), Rule::writes_state ? region_of(step.state[0]) : kernel::Region{},
       Rule::writes_state ? region_of(step.state[1]) : kernel::Region{}},
      body);
}

/// Without a copy, passes null, with a type for which code exists.
template <class Rule, class G>
void enqueue_with(Stream& stream, std::string_view name, const Step& step,
                  DeviceSpan<const typename Rule::Numbers> numbers, DeviceSpan<const G> gradient) {
  std::visit(
      [&]<class Wanted>(const Wanted& copy) {
        if constexpr (std::is_same_v<Wanted, std::monostate>) {
          using C = std::conditional_t<std::is_same_v<G, float>, core::bfloat16, G>;
          enqueue_typed<Rule, G, C>(stream, name, step, numbers, gradient, {});
        } else {
          using C = std::remove_pointer_t<decltype(copy.data())>;
          if constexpr (is_pair<G, C>)
            enqueue_typed<Rule, G, C>(stream, name, step, numbers, gradient, copy);
          else
            core::require(false, "parameters are copied in the type of a 16-bit gradient");
        }
      },
      step.copy);
}

template <class Rule>
void enqueue_update(Stream& stream, std::string_view name, const Step& step,
                    DeviceSpan<const typename Rule::Numbers> numbers) {
  if constexpr (Rule::reads_gradient)
    std::visit([&](const auto& gradient) { enqueue_with<Rule>(stream, name, step, numbers, gradient); }, step.gradient);
  else
    enqueue_with<Rule>(stream, name, step, numbers, DeviceSpan<const float>{});
}

}  // namespace lockstep::optim::cuda
