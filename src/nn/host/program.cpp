#include "nn/host/program.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "nn/host/elements.hpp"

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
  std::vector<std::optional<Tensor>> plan_backward(Builder&, std::span<const Tensor>) override { return {}; }
  void backward(PassContext&) override {}

 private:
  static constexpr Place given_{Space::input, 0, 0};
  const Storage& storage_;
  bool is_rounded_ = false;
};

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

bool reads(const Node& node, std::size_t index) {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](Value v) { return static_cast<std::size_t>(v.node) == index; });
}

}  // namespace

Program::Program(const Common& common, std::uint64_t n, bool is_training)
    : network_{common.network},
      computes_in_floats_{common.computes_in_floats},
      storage_{common.engine, common.parameters},
      steps_(common.network.nodes().size()) {
  Builder builder{common.engine,      common.network,    common.options,
                  common.parameters,  common.statistics, common.choices,
                  common.slow_layers, storage_,          n,
                  is_training};
  plan_forward(builder);
  if (is_training) plan_backward(builder);
  storage_.plan();
}

void Program::plan_forward(Builder& builder) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    builder.time = static_cast<int>(i);
    steps_[i].kernel = make_kernel(builder, i);
    if (builder.options.on_progress) builder.options.on_progress();
  }
  builder.time = static_cast<int>(steps_.size());
  loss_ = std::make_unique<LossKernel>(builder, steps_.back().kernel->output());
}

void Program::plan_backward(Builder& builder) {
  std::vector<std::vector<Tensor>> gradients(steps_.size());
  gradients.back().push_back(loss_->gradient());
  builder.pend(loss_->gradient(), 1);
  for (std::size_t i = steps_.size(); i-- > 0;) {
    const Node& node = network_.nodes()[i];
    if (!builder.needs_gradient({static_cast<int>(i)})) continue;
    if (builder.options.on_progress) builder.options.on_progress();
    core::require(!gradients[i].empty(), "the loss depends on every node with parameters");
    builder.time = static_cast<int>(2 * steps_.size() - i);
    for (const Tensor& gradient : gradients[i]) builder.pend(gradient, -1);
    Step& step = steps_[i];
    step.has_backward = true;
    step.incoming = add_up(builder, step, std::move(gradients[i]));
    const auto results = step.kernel->plan_backward(builder, step.incoming);
    for (std::size_t k = 0; k < results.size(); ++k) {
      if (!results[k] || !builder.needs_gradient(node.inputs[k])) continue;
      gradients[static_cast<std::size_t>(node.inputs[k].node)].push_back(*results[k]);
      builder.pend(*results[k], 1);
    }
  }
}

std::vector<Tensor> Program::add_up(Builder& builder, Step& step, std::vector<Tensor> gradients) const {
  while (gradients.size() > step.kernel->n_gradients_taken()) {
    const Tensor a = builder.use(gradients.back());
    gradients.pop_back();
    const Tensor b = builder.use(gradients.back());
    gradients.pop_back();
    Tensor out = a;
    if (!builder.may_overwrite(a)) out = builder.may_overwrite(b) ? b : builder.make(a.desc);
    step.sums.push_back({a.place, b.place, out});
    gradients.push_back(out);
  }
  return gradients;
}

std::unique_ptr<Kernel> Program::make_kernel(Builder& builder, std::size_t index) const {
  const Node& node = network_.nodes()[index];
  Planned planned{builder, node, index, {}};
  for (const Value input : node.inputs)
    planned.inputs.push_back(steps_[static_cast<std::size_t>(input.node)].kernel->output());
  const auto is_in_place = [&] { return may_be_overwritten(static_cast<std::size_t>(node.inputs[0].node)); };
  const auto by_onednn = [&](const MakeKernel& make) {
    return computes_in_floats_ ? make_in_floats(planned, make) : make(planned);
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
      [&](const Relu&) { return make_relu(planned, is_in_place()); },
      [&](const Add& layer) { return make_add(planned, layer); },
      [&](const MaxPool& layer) { return by_onednn([layer](const Planned& p) { return make_max_pool(p, layer); }); },
      [&](const GlobalAvgPool&) { return make_global_avg_pool(planned); },
      [&](const Flatten&) { return make_flatten(planned); },
      [&](const Dropout& layer) { return make_dropout(planned, layer); },
      [&](const Embedding& layer) { return make_embedding(planned, layer); },
      [&](const Concat&) { return make_concat(planned); },
      [&](const LogSoftmax&) { return make_log_softmax(planned); },
  };
  return std::visit(make, node.layer);
}

bool Program::may_be_overwritten(std::size_t index) const {
  const auto& nodes = network_.nodes();
  const Layer& layer = nodes[index].layer;
  const bool needs_output = !std::holds_alternative<Conv>(layer) && !std::holds_alternative<Linear>(layer);
  return !needs_output &&
         std::count_if(nodes.begin(), nodes.end(), [&](const Node& n) { return reads(n, index); }) == 1;
}

LossSums Program::forward(PassContext& pass, PassObserver& observer) {
  storage_.set_input(pass.batch.x.data());
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    steps_[i].kernel->forward(pass);
    observer.after_forward(i, steps_[i].kernel->output(), pass);
  }
  LossSums sums = loss_->forward(pass);
  if (!pass.is_finite) sums.loss = std::numeric_limits<double>::quiet_NaN();
  return sums;
}

void Program::run_sum(const Sum& sum) const {
  with_type(sum.out, [&]<class T>(T) {
    const auto* const a = storage_.at<const T>(sum.a);
    const auto* const b = storage_.at<const T>(sum.b);
    auto* const out = storage_.at<T>(sum.out.place);
    for_elements(sum.out, [&](std::size_t begin, std::size_t end) {
      loops().of<T>().add(a + begin, b + begin, out + begin, end - begin);
    });
  });
}

void Program::backward(PassContext& pass, PassObserver& observer) {
  loss_->backward(pass.numbers.scale * pass.numbers.sample_weight);
  for (std::size_t i = steps_.size(); i-- > 0;) {
    const Step& step = steps_[i];
    if (!step.has_backward) continue;
    for (const Sum& sum : step.sums) run_sum(sum);
    observer.before_backward(i, step.incoming);
    step.kernel->backward(pass);
    observer.after_backward(i);
  }
}

}  // namespace lockstep::nn::host
