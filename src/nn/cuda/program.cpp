#include "nn/cuda/program.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "core/error.hpp"
#include "nn/cuda/fusion.hpp"
#include "nn/cuda/kernels/elementwise.hpp"
#include "nn/cuda/kernels/softmax_cross_entropy.hpp"

namespace lockstep::nn::cuda {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

/// Work that a layer enqueues beside the backward pass may run during this many turns; a turn is the next layer with
/// parameters.
constexpr int n_turns_beside = 3;

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
Program<T>::Program(const Network& network, const ExecutorOptions& options, const ParameterLayout& parameters,
                    const Arenas<T>& arenas, Convolutions& convolutions, SharedArena* memory, std::uint64_t n,
                    bool is_training)
    : network_{network},
      options_{options},
      parameters_{parameters},
      n_{static_cast<std::size_t>(n)},
      values_{layouts_of(network)},
      steps_(network.nodes().size()),
      has_bad_label_{arenas.has_bad_label},
      loss_scale_{arenas.loss_scale} {
  Builder<T> builder{network, options, parameters, arenas, convolutions, memory_, n, is_training};
  plan_forward(builder);
  if (is_training) plan_backward(builder);
  n_bytes_ = memory_.plan();
  if (memory != nullptr) memory_.place_at(memory->take(n_bytes_));
}

template <class T>
void Program<T>::plan_forward(Builder<T>& builder) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    builder.time = static_cast<int>(i);
    steps_[i].layer = make_layer(builder, i);
    if (options_.on_progress) options_.on_progress();
  }
  ++builder.time;
  builder.use(steps_.back().layer->output());
  losses_ = builder.template make<SampleLoss>(n_);
}

template <class T>
void Program<T>::plan_backward(Builder<T>& builder) {
  loss_gradient_ = builder.make_value(values_.back());  // needed from the loss on, which may compute it
  ++builder.time;
  builder.use(steps_.back().layer->output());
  builder.use(losses_);
  builder.use(loss_gradient_);
  steps_.back().gradients.push_back(loss_gradient_);
  for (std::size_t i = steps_.size(); i-- > 0;) {
    Step& step = steps_[i];
    if (!builder.needs_gradient({static_cast<int>(i)})) continue;
    ++builder.time;
    core::require(!step.gradients.empty(), "the loss depends on every node with parameters");
    if (options_.on_progress) options_.on_progress();
    step.has_backward = true;
    const Node& node = network_.nodes()[i];
    if (!node.parameters.empty()) memory_.begin_turn(n_turns_beside);
    memory_.use_held(builder.time);
    for (const Place<T>& gradient : step.gradients) builder.use(gradient);
    if (step.gradients.size() == 2 && step.layer->takes_skip(step.gradients[1])) step.gradients.pop_back();
    for (std::size_t k = 1; k < step.gradients.size(); ++k) step.sums.push_back(builder.make_value(values_[i]));
    const auto results =
        step.layer->plan_backward(builder, step.sums.empty() ? step.gradients.front() : step.sums.back());
    for (std::size_t k = 0; k < results.size(); ++k)
      if (results[k].is_given()) steps_[static_cast<std::size_t>(node.inputs[k].node)].gradients.push_back(results[k]);
  }
}

template <class T>
std::unique_ptr<CudaLayer<T>> Program<T>::make_layer(Builder<T>& builder, std::size_t index) const {
  const Node& node = network_.nodes()[index];
  Planned<T> planned{builder, node, index, {}};
  for (const Value input : node.inputs)
    planned.inputs.push_back(builder.use(steps_[static_cast<std::size_t>(input.node)].layer->output()));
  const Value value{static_cast<int>(index)};
  const auto product = [&] { return make_product(planned, *products_of(network_, index, values_, builder.n)); };
  const auto make = Overloaded{
      [&](const Input&) { return make_input(planned); },
      [&](const Ids&) { return make_input(planned); },
      [&](const Linear&) { return product(); },
      [&](const Conv&) { return product(); },
      [&](const BatchNorm& layer) {
        return is_left_to_reader(network_, value) ? make_same(planned) : make_batch_norm(planned, layer);
      },
      [&](const Relu&) {
        return make_relu(planned, is_rectified(network_, node.inputs[0]), has_masked_gradient(network_, value));
      },
      [&](const Add& layer) {
        const Value* const normalized = normalized_by(network_, node);
        return normalized != nullptr ? make_added_batch_norm(planned, layer, *normalized) : make_add(planned, layer);
      },
      [&](const MaxPool& layer) { return make_max_pool(planned, layer); },
      [&](const GlobalAvgPool&) { return make_global_avg_pool(planned); },
      [&](const Flatten&) { return make_same(planned); },
      [&](const Dropout& layer) { return make_dropout(planned, layer); },
      [&](const Embedding& layer) { return make_embedding(planned, layer); },
      [&](const Concat&) { return make_concat(planned); },
      [&](const LogSoftmax&) { return make_same(planned); },  // it is part of the loss
  };
  return std::visit(make, node.layer);
}

template <class T>
void Program<T>::enqueue_loss(PassContext& pass, bool is_backward) {
  const ValueLayout& layout = values_.back();
  const LossRows<T> rows{.n_rows = n_,
                         .n_outputs = layout.n_channels,
                         .row_elements = layout.padded_channels,
                         .outputs = steps_.back().layer->output(),
                         .gradient = is_backward ? static_cast<T*>(loss_gradient_) : nullptr,
                         .numbers = pass.numbers,
                         .loss_scale = is_backward ? loss_scale_ : nullptr,
                         .losses = losses_,
                         .has_bad_label = has_bad_label_};
  const bool has_log_softmax = std::holds_alternative<LogSoftmax>(network_.nodes().back().layer);
  if (options_.loss == Loss::mse)
    enqueue(pass.stream, MeanSquare<T>{rows, pass.batch.targets});
  else if (options_.loss == Loss::nll && !has_log_softmax)
    enqueue(pass.stream, NegativeLog<T>{rows, pass.batch.labels});
  else
    enqueue(pass.stream,
            SoftmaxCrossEntropy<T>{rows, pass.batch.labels, options_.loss == Loss::nll ? 0 : options_.label_smoothing});
}

template <class T>
void Program<T>::send(PassContext& pass) {
  for (Step& step : steps_) step.layer->send(pass);
}

template <class T>
void Program<T>::forward(PassContext& pass, LossTotals* totals, MarkedTimes& times, bool is_backward_next) {
  times.begin(pass.stream);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    steps_[i].layer->forward(pass);
    if (steps_[i].layer->has_work()) times.forward_done(pass.stream, i);
  }
  enqueue_loss(pass, is_backward_next);
  has_loss_gradient_ = is_backward_next;
  enqueue(pass.stream, SumLosses{n_, losses_, totals});
  times.forward_done(pass.stream, steps_.size() - 1);
}

template <class T>
void Program<T>::backward(PassContext& pass, MarkedTimes& times) {
  times.begin(pass.stream);
  BesidePass beside{pass};
  if (!std::exchange(has_loss_gradient_, false)) enqueue_loss(pass, true);
  for (std::size_t i = steps_.size(); i-- > 0;) {
    Step& step = steps_[i];
    if (!step.has_backward) continue;
    const std::vector<int>& parameters = network_.nodes()[i].parameters;
    if (!parameters.empty()) beside.begin_turn();
    const T* sum = step.gradients.front();
    for (std::size_t k = 0; k < step.sums.size(); ++k) {
      enqueue(pass.stream, Sum<T>{n_ * values_[i].n_elements(), sum, step.gradients[k + 1], false, step.sums[k]});
      sum = step.sums[k];
    }
    const bool is_beside = pass.beside != nullptr && step.layer->runs_beside();
    if (is_beside) beside.fork();
    step.layer->backward(pass);
    if (is_beside) beside.end_fork();
    if (step.layer->has_work() || !step.sums.empty()) times.backward_done(pass.stream, i);
    for (const int parameter : parameters) beside.tell(parameters_.slot_number(parameter));
    if (!parameters.empty()) times.begin(pass.stream);  // hooks may have enqueued other work since
  }
  beside.join_all();
}

template class Program<core::bfloat16>;
template class Program<core::float16>;
template class Program<float>;

}  // namespace lockstep::nn::cuda
