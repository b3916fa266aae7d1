#include "nn/cuda/program.hpp"

#include <deque>
#include <utility>

#include "nn/cuda/kernels/elementwise.hpp"
#include "nn/cuda/kernels/softmax_cross_entropy.hpp"
#include "nn/plan/fusion.hpp"

namespace lockstep::nn::cuda {
namespace {

/// A pass, and the work that layers have enqueued beside it, in order, until the pass waits for it.
class BesidePass {
 public:
  explicit BesidePass(PassContext& pass) : pass_{pass} {}

  void begin_turn() { join(++turn_ - n_turns_beside); }
  /// fork() and end_fork() enclose work beside the pass; it begins after all work that the pass was given before.
  void fork() { pass_.beside->wait_for(pass_.stream.mark()); }
  void end_fork() { open_.push_back({turn_, pass_.beside->mark(), {}}); }
  /// Reports the slot's gradient as ready, or does so once the work beside the pass is done.
  void tell(std::size_t slot) {
    if (open_.empty())
      pass_.hooks->ready(slot);
    else
      open_.back().slots.push_back(slot);
  }
  void join_all() { join(turn_ + 1); }

 private:
  struct Fork {
    int turn;
    runtime::Event end;
    std::vector<std::size_t> slots;
  };

  /// Waits for the work of turns before `turn`.
  void join(int turn) {
    for (; !open_.empty() && open_.front().turn < turn; open_.pop_front()) {
      pass_.stream.wait_for(open_.front().end);
      for (const std::size_t slot : open_.front().slots) pass_.hooks->ready(slot);
    }
  }

  PassContext& pass_;
  std::deque<Fork> open_{};
  int turn_ = 0;
};

}  // namespace

template <class T>
Program<T>::Program(const Common<T>& common, SharedArena* memory, std::uint64_t n, bool is_training)
    : common_{common},
      n_{static_cast<std::size_t>(n)},
      values_{layouts_of(common.network)},
      steps_(common.plan.n_nodes()) {
  Builder<T> builder{common, memory_, n, is_training};
  plan_forward(builder, steps_, [&](const Planned<T>& planned) {
    for (const Place<T>& input : planned.inputs) builder.use(input);
    return std::visit([&](const auto& layer) { return make_layer(planned, layer); }, planned.node.layer);
  });
  const Place<T> output = builder.use(steps_.back().layer->output());
  losses_ = builder.template make<SampleLoss>(n_rows());
  if (is_training) {
    loss_gradient_ = builder.make_value(values_.back());  // needed from the loss on, which may compute it
    builder.time = common.plan.time_of_loss_gradient();
    builder.use(output);
    builder.use(losses_);
    plan_backward(builder, steps_, builder.use(loss_gradient_));
  }
  n_bytes_ = memory_.plan();
  if (memory != nullptr) memory_.place_at(memory->take(n_bytes_));
}

template <class T>
void Program<T>::enqueue_loss(PassContext& pass, bool is_backward) {
  const ValueLayout& layout = values_.back();
  const LossRows<T> rows{.n_rows = n_rows(),
                         .n_outputs = layout.n_channels,
                         .row_elements = layout.padded_channels,
                         .outputs = steps_.back().layer->output(),
                         .gradient = is_backward ? static_cast<T*>(loss_gradient_) : nullptr,
                         .numbers = pass.numbers,
                         .loss_scale = is_backward ? common_.arrays.loss_scale : nullptr,
                         .losses = losses_,
                         .has_bad_label = common_.arrays.has_bad_label,
                         .share = 1 / static_cast<float>(layout.n_rows())};
  const bool has_log_softmax = std::holds_alternative<LogSoftmax>(common_.network.nodes().back().layer);
  if (common_.options.loss == Loss::mse)
    enqueue(pass.stream, MeanSquare<T>{rows, pass.batch.targets});
  else if (common_.options.loss == Loss::nll && !has_log_softmax)
    enqueue(pass.stream, NegativeLog<T>{rows, pass.batch.labels});
  else
    enqueue(pass.stream,
            SoftmaxCrossEntropy<T>{rows, pass.batch.labels,
                                   common_.options.loss == Loss::nll ? 0 : common_.options.label_smoothing});
}

template <class T>
void Program<T>::send(PassContext& pass) {
  for (const auto& step : steps_) step.layer->send(pass);
}

template <class T>
void Program<T>::forward(PassContext& pass, LossTotals* totals, LayerTimes& times, bool is_backward_next) {
  times.begin(pass.stream);
  const UnitWalk& units = common_.parameters.slots().units();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    units.forward(i, pass.hooks, &pass.stream, [&] { steps_[i].layer->forward(pass); });
    if (steps_[i].layer->has_work()) times.forward_done(pass.stream, i);
  }
  enqueue_loss(pass, is_backward_next);
  has_loss_gradient_ = is_backward_next;
  enqueue(pass.stream, SumLosses{n_rows(), losses_, totals});
  times.forward_done(pass.stream, steps_.size() - 1);
}

template <class T>
void Program<T>::backward(PassContext& pass, LayerTimes& times) {
  times.begin(pass.stream);
  BesidePass beside{pass};
  const UnitWalk& units = common_.parameters.slots().units();
  if (!std::exchange(has_loss_gradient_, false)) enqueue_loss(pass, true);
  for (const BackwardStep& step : common_.plan.backward) {
    CudaLayer<T>* const layer = steps_[step.node].layer.get();
    const auto& sums = steps_[step.node].sums;
    if (!step.completed.empty()) beside.begin_turn();
    if (step.written.size() < common_.network.nodes()[step.node].parameters.size())
      beside.join_all();  // the gradient to which the layer adds may have been written beside the pass
    for (const GradientSum<Place<T>>& sum : sums)
      enqueue(pass.stream, Sum<T>{n_ * values_[step.node].n_elements(), sum.a, sum.b, false, sum.out});
    const bool is_beside = pass.beside != nullptr && layer->runs_beside();
    units.backward(step.node, pass.hooks, &pass.stream, [&] {
      if (is_beside) beside.fork();
      layer->backward(pass);
      if (is_beside) beside.end_fork();
    });
    if (layer->has_work() || !sums.empty()) times.backward_done(pass.stream, step.node);
    const core::Slice ready = common_.parameters.slots().reported_after(step.completed);
    for (std::size_t slot = ready.offset; slot < ready.end(); ++slot) beside.tell(slot);
    if (!step.completed.empty()) times.begin(pass.stream);  // hooks may have enqueued other work since
  }
  beside.join_all();
}

template class Program<core::bfloat16>;
template class Program<core::float16>;
template class Program<float>;

}  // namespace lockstep::nn::cuda
