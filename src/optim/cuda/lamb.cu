#include "optim/cuda/update_bodies.hpp"

namespace lockstep::optim::cuda {
namespace {

struct Lamb {
  using Numbers = LambNumbers;
  static constexpr int n_states = 2;
  static constexpr bool reads_gradient = false;
  static constexpr bool writes_state = false;
  LOCKSTEP_HOST_DEVICE static void step(float, float& p, float& exp_avg, float& exp_avg_sq, const Numbers& s) {
    step_lamb(p, exp_avg, exp_avg_sq, s);
  }
};

/// The first pass. The square of a float32 is exact in double.
template <class G>
struct Moments {
  static constexpr int max_threads = 256;
  const StepState* done;
  const LambNumbers* numbers;
  const Piece* pieces;
  std::uint32_t n_pieces;
  const G* gradient;
  const float* parameters;
  float* exp_avg;
  float* exp_avg_sq;
  double* parameter_partials;
  double* update_partials;

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    if (done->skips != 0) return;
    const float factor = done->factor;
    for (std::uint32_t i = team.block(); i < n_pieces; i += team.n_blocks()) {
      const Piece piece = pieces[i];
      const LambNumbers s = numbers[piece.range];
      auto of_parameter = team.per_thread(0.0);
      auto of_update = team.per_thread(0.0);
      team.each([&](int thread) {
        each_unit(team, thread, piece,
                  [&](std::size_t at) { update(at, factor, s, of_parameter[thread], of_update[thread]); });
      });
      const double parameter = team.sum(of_parameter);
      const double update_sum = team.sum(of_update);
      team.each([&](int thread) {
        if (thread != 0) return;
        parameter_partials[i] = parameter;
        update_partials[i] = update_sum;
      });
    }
  }

  LOCKSTEP_HOST_DEVICE void update(std::size_t at, float factor, const LambNumbers& s, double& of_parameter,
                                   double& of_update) const {
    const auto g = kernel::load_once<G, unit>(gradient, at);
    const auto p = kernel::load_once<float, unit>(parameters, at);
    auto mean = kernel::load_once<float, unit>(exp_avg, at);
    auto square = kernel::load_once<float, unit>(exp_avg_sq, at);
    for (int j = 0; j < unit; ++j) {
      const double change = step_lamb_moments(kernel::to_float(g[j]) * factor, p[j], mean[j], square[j], s);
      const double parameter = p[j];
      of_parameter += parameter * parameter;
      of_update += change * change;
    }
    kernel::store_once(exp_avg, at, mean);
    kernel::store_once(exp_avg_sq, at, square);
  }
};

}  // namespace

void lamb_moments(Stream& stream, const Step& step, DeviceSpan<const LambNumbers> numbers,
                  const LambPartials& partials) {
  core::require(partials.parameter.size() == step.pieces.size() && partials.update.size() == step.pieces.size(),
                "there is a number for every piece");
  std::visit(
      [&]<class G>(const DeviceSpan<const G>& gradient) {
        const Moments<G> body{.done = step.done.data(),
                              .numbers = numbers.data(),
                              .pieces = step.pieces.data(),
                              .n_pieces = static_cast<std::uint32_t>(step.pieces.size()),
                              .gradient = gradient.data(),
                              .parameters = step.parameters.data(),
                              .exp_avg = step.state[0].data(),
                              .exp_avg_sq = step.state[1].data(),
                              .parameter_partials = partials.parameter.data(),
                              .update_partials = partials.update.data()};
        kernel::enqueue(stream, "lamb_moments", grid_of_pieces(step.pieces.size()),
                        {region_of(step.done), region_of(numbers), region_of(step.pieces), region_of(gradient),
                         region_of(step.parameters), region_of(step.state[0]), region_of(step.state[1])},
                        {region_of(step.state[0]), region_of(step.state[1]), region_of(partials.parameter),
                         region_of(partials.update)},
                        body);
      },
      step.gradient);
}

void lamb(Stream& stream, const Step& step, DeviceSpan<const LambNumbers> numbers) {
  enqueue_update<Lamb>(stream, "lamb", step, numbers);
}

}  // namespace lockstep::optim::cuda
