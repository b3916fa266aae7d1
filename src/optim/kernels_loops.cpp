// The loops of one kernel set; the compiler vectorizes them.
// Invariant: an element's arithmetic is element.hpp's, and nothing else touches the parameters and the state.
// Compiled once for each instruction set (lockstep_loop_sources).
#include "optim/element.hpp"

namespace lockstep::optim {
namespace {

// Loops over arrays. `g` is the gradient, `p` the parameters. Loops copy a value before they change it, because
// compilers assume that references into the arrays overlap.

inline void update_sgd(std::size_t n, const float* __restrict g, float* __restrict p, SgdNumbers s) {
  for (std::size_t i = 0; i < n; ++i) {
    float parameter = p[i];
    step_sgd(g[i], parameter, s);
    p[i] = parameter;
  }
}

inline void update_sgd_momentum(std::size_t n, const float* __restrict g, float* __restrict p,
                                float* __restrict momentum, SgdNumbers s) {
  for (std::size_t i = 0; i < n; ++i) {
    float parameter = p[i], mean = momentum[i];
    step_sgd_momentum(g[i], parameter, mean, s);
    momentum[i] = mean;
    p[i] = parameter;
  }
}

inline void update_adam(std::size_t n, const float* __restrict g, float* __restrict p, float* __restrict exp_avg,
                        float* __restrict exp_avg_sq, AdamNumbers s) {
  for (std::size_t i = 0; i < n; ++i) {
    float parameter = p[i], mean = exp_avg[i], square = exp_avg_sq[i];
    step_adam(g[i], parameter, mean, square, s);
    exp_avg[i] = mean;
    exp_avg_sq[i] = square;
    p[i] = parameter;
  }
}

inline void update_adadelta(std::size_t n, const float* __restrict g, float* __restrict p, float* __restrict square_avg,
                            float* __restrict acc_delta, AdadeltaNumbers s) {
  for (std::size_t i = 0; i < n; ++i) {
    float parameter = p[i], square = square_avg[i], delta = acc_delta[i];
    step_adadelta(g[i], parameter, square, delta, s);
    square_avg[i] = square;
    acc_delta[i] = delta;
    p[i] = parameter;
  }
}

inline void update_lars(std::size_t n, const float* __restrict g, float* __restrict p, float* __restrict momentum,
                        LarsNumbers s) {
  for (std::size_t i = 0; i < n; ++i) {
    float parameter = p[i], mean = momentum[i];
    step_lars(g[i], parameter, mean, s);
    momentum[i] = mean;
    p[i] = parameter;
  }
}

/// Writes the update over the gradient.
inline void update_lamb_moments(std::size_t n, float* __restrict g, const float* __restrict p,
                                float* __restrict exp_avg, float* __restrict exp_avg_sq, LambNumbers s) {
  for (std::size_t i = 0; i < n; ++i) {
    float mean = exp_avg[i], square = exp_avg_sq[i];
    g[i] = step_lamb_moments(g[i], p[i], mean, square, s);
    exp_avg[i] = mean;
    exp_avg_sq[i] = square;
  }
}

inline void update_lamb(std::size_t n, float* __restrict p, const float* __restrict exp_avg,
                        const float* __restrict exp_avg_sq, LambNumbers s) {
  for (std::size_t i = 0; i < n; ++i) {
    float parameter = p[i];
    step_lamb(parameter, exp_avg[i], exp_avg_sq[i], s);
    p[i] = parameter;
  }
}

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

void sgd(const Elements& e, const SgdNumbers& s) {
  for_each_block(e, [&](std::size_t n, const float* g, std::size_t at) { update_sgd(n, g, e.parameters + at, s); });
}

void sgd_momentum(const Elements& e, const SgdNumbers& s) {
  for_each_block(e, [&](std::size_t n, const float* g, std::size_t at) {
    update_sgd_momentum(n, g, e.parameters + at, e.state[0] + at, s);
  });
}

void adam(const Elements& e, const AdamNumbers& s) {
  for_each_block(e, [&](std::size_t n, const float* g, std::size_t at) {
    update_adam(n, g, e.parameters + at, e.state[0] + at, e.state[1] + at, s);
  });
}

void adadelta(const Elements& e, const AdadeltaNumbers& s) {
  for_each_block(e, [&](std::size_t n, const float* g, std::size_t at) {
    update_adadelta(n, g, e.parameters + at, e.state[0] + at, e.state[1] + at, s);
  });
}

void lars(const Elements& e, const LarsNumbers& s) {
  for_each_block(e, [&](std::size_t n, const float* g, std::size_t at) {
    update_lars(n, g, e.parameters + at, e.state[0] + at, s);
  });
}

SquaredNorms lamb_moments(const Elements& e, const LambNumbers& s) {
  SquareSum parameter;
  SquareSum update;
  for_each_block(e, [&](std::size_t n, float* g, std::size_t at) {
    update_lamb_moments(n, g, e.parameters + at, e.state[0] + at, e.state[1] + at, s);
    parameter.add(n, e.parameters + at);
    update.add(n, g);
  });
  return {parameter.total(), update.total()};
}

void lamb(const Elements& e, const LambNumbers& s) {
  update_lamb(e.n, e.parameters + e.offset, e.state[0] + e.offset, e.state[1] + e.offset, s);
}

double squared_gradient(const Elements& e) {
  SquareSum sum;
  for_each_block(e, [&](std::size_t n, const float* g, std::size_t) { sum.add(n, g); });
  return sum.total();
}

double squared_parameter(const Elements& e) {
  SquareSum sum;
  sum.add(e.n, e.parameters + e.offset);
  return sum.total();
}

constexpr Kernels these_kernels{.name = name(core::this_loop_set),
                                .sgd = &sgd,
                                .sgd_momentum = &sgd_momentum,
                                .adam = &adam,
                                .adadelta = &adadelta,
                                .lars = &lars,
                                .lamb_moments = &lamb_moments,
                                .lamb = &lamb,
                                .squared_gradient = &squared_gradient,
                                .squared_parameter = &squared_parameter};

}  // namespace

template <>
const Kernels& Kernels::version<core::this_loop_set>() noexcept {
  return these_kernels;
}

}  // namespace lockstep::optim
