// The loops of one kernel set, for the compiler to vectorize with the flags of the file that includes them.
// Invariant: a*b+c is fused where fused() says so and nowhere else, which is where PyTorch's CPU kernels fuse it; on a
// processor without that instruction (x86 before 2013) fused() is a slow C function of the same result.
// Used by kernels_plain.cpp, kernels_avx2.cpp and kernels_avx512.cpp.
#pragma once

#include "optim/kernels_sets.hpp"

namespace lockstep::optim {
namespace {

/// a * b + c, rounded once.
inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float root(float x) { return __builtin_sqrtf(x); }

// An element's arithmetic, array by array. `g` is the gradient, `p` the parameters.

inline void update_sgd(std::size_t n, const float* __restrict g, float* __restrict p, SgdNumbers s) {
  for (std::size_t i = 0; i < n; ++i) {
    const float gradient = fused(p[i], s.decay, g[i]);
    p[i] = fused(gradient, -s.lr, p[i]);
  }
}

inline void update_sgd_momentum(std::size_t n, const float* __restrict g, float* __restrict p,
                                float* __restrict momentum, SgdNumbers s) {
  for (std::size_t i = 0; i < n; ++i) {
    const float gradient = fused(p[i], s.decay, g[i]);
    momentum[i] = fused(gradient, s.undamped, momentum[i] * s.momentum);
    const float direction = s.is_nesterov ? fused(momentum[i], s.momentum, gradient) : momentum[i];
    p[i] = fused(direction, -s.lr, p[i]);
  }
}

/// From `average` towards `value`, from the nearer end as torch.lerp. One fused() behind both choices: with one in each
/// arm loops are vectorized for AVX-512 only (Adam with AVX2: 6 times as fast as before).
inline float mix(float average, float value, float weight) {
  const bool is_near = weight < 0.5F;
  return fused(is_near ? weight : weight - 1.0F, value - average, is_near ? average : value);
}

inline float mix_square(float average, float value, float keep, float weight) {
  return fused(weight * value, value, average * keep);
}

inline void update_adam(std::size_t n, const float* __restrict g, float* __restrict p, float* __restrict exp_avg,
                        float* __restrict exp_avg_sq, AdamNumbers s) {
  for (std::size_t i = 0; i < n; ++i) {
    const float parameter = p[i] * s.keep;
    const float gradient = fused(p[i], s.decay, g[i]);
    exp_avg[i] = mix(exp_avg[i], gradient, s.weight);
    exp_avg_sq[i] = mix_square(exp_avg_sq[i], gradient, s.beta2, s.weight2);
    p[i] = parameter - s.rate * exp_avg[i] / (root(exp_avg_sq[i]) / s.bias2_sqrt + s.eps);
  }
}

inline void update_adadelta(std::size_t n, const float* __restrict g, float* __restrict p, float* __restrict square_avg,
                            float* __restrict acc_delta, AdadeltaNumbers s) {
  for (std::size_t i = 0; i < n; ++i) {
    const float gradient = fused(p[i], s.decay, g[i]);
    square_avg[i] = mix_square(square_avg[i], gradient, s.rho, s.weight);
    const float delta = root(acc_delta[i] + s.eps) / root(square_avg[i] + s.eps) * gradient;
    acc_delta[i] = mix_square(acc_delta[i], delta, s.rho, s.weight);
    p[i] = fused(delta, -s.lr, p[i]);
  }
}

inline void update_lars(std::size_t n, const float* __restrict g, float* __restrict p, float* __restrict momentum,
                        LarsNumbers s) {
  for (std::size_t i = 0; i < n; ++i) {
    const float gradient = fused(p[i], s.decay, g[i]);
    momentum[i] = fused(gradient, s.rate, momentum[i] * s.momentum);
    p[i] -= momentum[i];
  }
}

inline float lamb_update(float parameter, float exp_avg, float exp_avg_sq, const LambNumbers& s) {
  return fused(parameter, s.decay, exp_avg / s.bias1 / (root(exp_avg_sq) / s.bias2_sqrt + s.eps));
}

/// Writes the update over the gradient.
inline void update_lamb_moments(std::size_t n, float* __restrict g, const float* __restrict p,
                                float* __restrict exp_avg, float* __restrict exp_avg_sq, LambNumbers s) {
  for (std::size_t i = 0; i < n; ++i) {
    exp_avg[i] = mix(exp_avg[i], g[i], s.weight);
    exp_avg_sq[i] = mix_square(exp_avg_sq[i], g[i], s.beta2, s.weight2);
    g[i] = lamb_update(p[i], exp_avg[i], exp_avg_sq[i], s);
  }
}

inline void update_lamb(std::size_t n, float* __restrict p, const float* __restrict exp_avg,
                        const float* __restrict exp_avg_sq, LambNumbers s) {
  for (std::size_t i = 0; i < n; ++i) p[i] = fused(lamb_update(p[i], exp_avg[i], exp_avg_sq[i], s), -s.rate, p[i]);
}

/// A sum of squares in a fixed number of lanes, the same for vectors of any length. The square of a float32 is exact in
/// double. Only the last call may have an n that is no multiple of n_lanes.
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

/// What the first-level cache holds beside the arrays that stream by.
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

consteval Kernels make_kernels(std::string_view name) {
  return {.name = name,
          .sgd = &sgd,
          .sgd_momentum = &sgd_momentum,
          .adam = &adam,
          .adadelta = &adadelta,
          .lars = &lars,
          .lamb_moments = &lamb_moments,
          .lamb = &lamb,
          .squared_gradient = &squared_gradient,
          .squared_parameter = &squared_parameter};
}

}  // namespace
}  // namespace lockstep::optim
