#include "nn/host/program.hpp"

#include <limits>
#include <utility>

#include "nn/host/elements.hpp"
#include "nn/plan/fusion.hpp"

namespace lockstep::nn::host {
namespace {

/// Passes samples on unchanged or rounded.
class InputKernel final : public Kernel {
 public:
  InputKernel(const Planned& planned, bool has_ids) : storage_{planned.builder.storage} {
    Builder& builder = planned.builder;
    output_ = {builder.samples(planned.node.output), given_};
    is_rounded_ = !has_ids && builder.type == dnnl::memory::data_type::bf16;
    if (is_rounded_) output_ = builder.make(output_.desc);
  }
  void forward(PassContext&) override {
    if (!is_rounded_) return;
    const auto* const x = storage_.at<const float>(given_);
    auto* const out = storage_.at<core::bfloat16>(output_.place);
    for_elements(output_, [&](std::size_t begin, std::size_t end) {
      loops().bfloats.from_floats(x + begin, out + begin, end - begin);
    });
  }
  std::vector<Tensor> plan_backward(Builder&, std::span<const Tensor>) override { return {}; }
  void backward(PassContext&) override {}

 private:
  static constexpr Place given_{Space::input, 0, 0};
  const Storage& storage_;
  bool is_rounded_ = false;
};

/// Whether the only reader of a node may overwrite its output, because the node itself no longer needs it.
bool may_be_overwritten(const Network& network, Value value) {
  const Layer& layer = node_of(network, value).layer;
  const bool needs_output = !std::holds_alternative<Conv>(layer) && !std::holds_alternative<Linear>(layer);
  return !needs_output && sole_reader(network, value) != nullptr;
}

std::unique_ptr<Kernel> make_kernel(const Planned& planned) {
  const Builder& builder = planned.builder;
  const auto by_onednn = [&](const MakeKernel& make) {
    return builder.computes_in_floats ? make_in_floats(planned, make) : make(planned);
  };
  const auto make = Overloaded{
      [&](const Input&) -> std::unique_ptr<Kernel> { return std::make_unique<InputKernel>(planned, false); },
      [&](const Ids&) -> std::unique_ptr<Kernel> { return std::make_unique<InputKernel>(planned, true); },
      [&](const Linear& layer) { return by_onednn([layer](const Planned& p) { return make_linear(p, layer); }); },
      [&](const Conv& layer) { return by_onednn([layer](const Planned& p) { return make_conv(p, layer); }); },
      [&](const BatchNorm& layer) {
        const bool is_shared = builder.is_training && builder.options.is_group_of_ranks;
        if (is_shared) return make_sync_batch_norm(planned, layer);
        return by_onednn([layer](const Planned& p) { return make_batch_norm(p, layer); });
      },
      [&](const Relu&) { return make_relu(planned, may_be_overwritten(builder.network, planned.node.inputs[0])); },
      [&](const Add& layer) { return make_add(planned, layer); },
      [&](const MaxPool& layer) { return by_onednn([layer](const Planned& p) { return make_max_pool(p, layer); }); },
      [&](const GlobalAvgPool&) { return make_global_avg_pool(planned); },
      [&](const Flatten&) { return make_flatten(planned); },
      [&](const Dropout& layer) { return make_dropout(planned, layer); },
      [&](const Embedding& layer) { return make_embedding(planned, layer); },
      [&](const Concat&) { return make_concat(planned); },
      [&](const LogSoftmax&) { return make_log_softmax(planned); },
  };
  return std::visit(make, planned.node.layer);
}

}  // namespace

Program::Program(const Common& common, std::uint64_t n, bool is_training)
    : common_{common}, storage_{common.engine, common.parameters}, steps_(common.plan.n_nodes()) {
  Builder builder{common, storage_, n, is_training};
  plan_forward(builder, steps_, make_kernel);
  loss_ = std::make_unique<LossKernel>(builder, steps_.back().layer->output());
  if (is_training) plan_backward(builder, steps_, loss_->gradient());
  storage_.plan();
}

LossSums Program::forward(PassContext& pass, PassObserver& observer) {
  storage_.set_input(pass.batch.x.data());
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    steps_[i].layer->forward(pass);
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
  for (const BackwardStep& step : common_.plan.backward) {
    const LayerStep<Kernel, Tensor>& here = steps_[step.node];
    for (const GradientSum<Tensor>& sum : here.sums) run_sum(sum);
    observer.before_backward(step, here.gradients);
    here.layer->backward(pass);
    observer.after_backward(step);
  }
}

}  // namespace lockstep::nn::host
