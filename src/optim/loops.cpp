// The loops of one instruction set; the compiler vectorizes them.
// Invariant: an element's arithmetic is its rule's, and nothing else touches the parameters and the states.
// Compiled once for each instruction set (lockstep_loop_sources).
#include "optim/loops.hpp"

namespace lockstep::optim {
namespace {

/// A sum of squares in a fixed number of lanes, for vectors of any length. The square of a float32 is exact in double.
/// Only the last call may have an n that is not a multiple of n_lanes.
class SquareSum {
 public:
  void add(std::size_t n, const float* __restrict x) {
    std::size_t i = 0;
    for (; n - i >= n_lanes; i += n_lanes)
      for (std::size_t lane = 0; lane < n_lanes; ++lane) lanes_[lane] += square(x[i + lane]);
    for (std::size_t lane = 0; i + lane < n; ++lane) lanes_[lane] += square(x[i + lane]);
  }

  [[nodiscard]] double total() const {
    double sum = 0;
    for (const double lane : lanes_) sum += lane;
    return sum;
  }

 private:
  static constexpr std::size_t n_lanes = 16;
  static double square(double x) { return x * x; }

  double lanes_[n_lanes] = {};
};

/// The elements that fit into the first-level cache beside the arrays that are streamed.
constexpr std::size_t block_elements = 1024;

inline void sum_gradients(const Elements& e, std::size_t at, std::size_t n, float* __restrict sum) {
  if (e.n_gradients == 0) {
    for (std::size_t i = 0; i < n; ++i) sum[i] = 0;
    return;
  }
  const float* first = e.gradients[0] + at;
  for (std::size_t i = 0; i < n; ++i) sum[i] = first[i];
  for (std::size_t rank = 1; rank < e.n_gradients; ++rank) {
    const float* __restrict more = e.gradients[rank] + at;
    for (std::size_t i = 0; i < n; ++i) sum[i] += more[i];
  }
  for (std::size_t i = 0; i < n; ++i) sum[i] *= e.scale;
}

/// Calls update(n, gradient, at) block by block, so that every array passes through the caches once.
template <class Update>
void for_each_block(const Elements& e, Update update) {
  alignas(64) float gradient[block_elements];
  for (std::size_t done = 0; done < e.n; done += block_elements) {
    const std::size_t n = e.n - done < block_elements ? e.n - done : block_elements;
    sum_gradients(e, e.offset + done, n, gradient);
    update(n, gradient, e.offset + done);
  }
}

// Loops over arrays. `g` is the gradient, `p` the parameters, `first` and `second` the states. Loops copy a value
// before they change it, because compilers assume that references into the arrays overlap.

template <class R>
void update_block(std::size_t n, const float* __restrict g, float* __restrict p, float* __restrict first,
                  float* __restrict second, typename R::Numbers s) {
  for (std::size_t i = 0; i < n; ++i) {
    float parameter = p[i];
    if constexpr (n_states<R> == 0) {
      R::step(g[i], parameter, s);
    } else if constexpr (n_states<R> == 1) {
      float state = first[i];
      R::step(g[i], parameter, state, s);
      first[i] = state;
    } else {
      float a = first[i], b = second[i];
      R::step(g[i], parameter, a, b, s);
      first[i] = a;
      second[i] = b;
    }
    p[i] = parameter;
  }
}

/// Writes the states, and the update over the gradient.
template <class R>
void measure_block(std::size_t n, float* __restrict g, const float* __restrict p, float* __restrict first,
                   float* __restrict second, typename R::Numbers s) {
  static_assert(n_states<R> == 2);
  for (std::size_t i = 0; i < n; ++i) {
    float a = first[i], b = second[i];
    g[i] = R::measure(g[i], p[i], a, b, s);
    first[i] = a;
    second[i] = b;
  }
}

/// After measure_block().
template <class R>
void finish_block(std::size_t n, float* __restrict p, const float* __restrict first, const float* __restrict second,
                  typename R::Numbers s) {
  for (std::size_t i = 0; i < n; ++i) {
    float parameter = p[i];
    R::step(parameter, first[i], second[i], s);
    p[i] = parameter;
  }
}

double squared_gradient(const Elements& e) {
  SquareSum sum;
  for_each_block(e, [&](std::size_t n, const float* g, std::size_t) { sum.add(n, g); });
  return sum.total();
}

template <class R>
SquaredNorms measure(const Elements& e, const Settings& of) {
  SquareSum parameter;
  SquareSum update;
  if constexpr (R::norms == Norms::of_gradient) {
    parameter.add(e.n, e.parameters + e.offset);
    return {parameter.total(), squared_gradient(e)};
  } else {
    const typename R::Numbers s = R::numbers(of);
    for_each_block(e, [&](std::size_t n, float* g, std::size_t at) {
      measure_block<R>(n, g, e.parameters + at, e.state[0] + at, e.state[1] + at, s);
      parameter.add(n, e.parameters + at);
      update.add(n, g);
    });
    return {parameter.total(), update.total()};
  }
}

template <class R>
void update_with(const Elements& e, const typename R::Numbers& s) {
  if constexpr (R::norms == Norms::of_update) {
    finish_block<R>(e.n, e.parameters + e.offset, e.state[0] + e.offset, e.state[1] + e.offset, s);
  } else {
    for_each_block(e, [&](std::size_t n, const float* g, std::size_t at) {
      update_block<R>(n, g, e.parameters + at, n_states<R> > 0 ? e.state[0] + at : nullptr,
                      n_states<R> > 1 ? e.state[1] + at : nullptr, s);
    });
  }
}

template <class R>
void update(const Elements& e, const Settings& of, const SquaredNorms& norms) {
  typename R::Numbers s = R::numbers(of);
  if constexpr (R::norms != Norms::none) s.rate = static_cast<float>(R::rate(of, norms));
  if constexpr (!std::is_void_v<typename R::WithoutMomentum>)
    if (of.spec.momentum == 0) return update_with<typename R::WithoutMomentum>(e, s);
  update_with<ArithmeticOf<R>>(e, s);
}

constexpr Loops these_loops{.set = core::this_loop_set,
                            .rules = for_each_rule(Rules{},
                                                   []<class R>(R) {
                                                     RuleLoops loops{.update = &update<R>};
                                                     if constexpr (R::norms != Norms::none) loops.measure = &measure<R>;
                                                     return loops;
                                                   }),
                            .squared_gradient = &squared_gradient};

}  // namespace

template <>
const Loops& Loops::version<core::this_loop_set>() noexcept {
  return these_loops;
}

}  // namespace lockstep::optim
