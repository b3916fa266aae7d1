#include "nn/host/program.hpp"

#include <limits>
#include <utility>

#include "nn/host/elements.hpp"

namespace lockstep::nn::host {
namespace {

std::unique_ptr<HostLayer> make_any_layer(const Planned& planned) {
  return std::visit([&](const auto& layer) { return make_layer(planned, layer); }, planned.node.layer);
}

}  // namespace

Program::Program(const Common& common, std::uint64_t n, bool is_training)
    : common_{common}, storage_{common.engine, common.places}, steps_(common.plan.n_nodes()) {
  Builder builder{common, storage_, n, is_training};
  plan_forward(builder, steps_, make_any_layer);
  loss_ = std::make_unique<HostLoss>(builder, steps_.back().layer->output());
  if (is_training) plan_backward(builder, steps_, loss_->gradient());
  storage_.plan();
}

LossSums Program::forward(PassContext& pass, PassObserver& observer) {
  storage_.set_input(pass.batch.x.data());
  const UnitWalk& units = common_.parameters.slots().units();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    units.forward(i, pass.hooks, pass.stream, [&] { steps_[i].layer->forward(pass); });
    observer.after_forward(i, steps_[i].layer->output(), pass);
  }
  LossSums sums = loss_->forward(pass);
  if (!pass.is_finite) sums.loss = std::numeric_limits<double>::quiet_NaN();
  return sums;
}

void Program::run_sum(const GradientSum<Tensor>& sum) const {
  with_type(sum.out, [&]<class T>(T) {
    const auto* const a = storage_.at<const T>(sum.a.place);
    const auto* const b = storage_.at<const T>(sum.b.place);
    auto* const out = storage_.at<T>(sum.out.place);
    for_elements(sum.out, [&](std::size_t begin, std::size_t end) {
      loops().of<T>().add(a + begin, b + begin, out + begin, end - begin);
    });
  });
}

void Program::backward(PassContext& pass, PassObserver& observer) {
  loss_->backward(pass.numbers.scale * pass.numbers.sample_weight);
  const UnitWalk& units = common_.parameters.slots().units();
  for (const BackwardStep& step : common_.plan.backward) {
    const LayerStep<HostLayer, Tensor>& here = steps_[step.node];
    for (const GradientSum<Tensor>& sum : here.sums) run_sum(sum);
    units.backward(step.node, pass.hooks, pass.stream, [&] {
      observer.before_backward(step, here.gradients);
      here.layer->backward(pass);
    });
    observer.after_backward(step);
  }
}

}  // namespace lockstep::nn::host
