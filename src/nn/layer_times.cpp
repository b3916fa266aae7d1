#include "nn/layer_times.hpp"

namespace lockstep::nn {

void LayerTimes::start_profile() {
  is_profiling_ = true;
  marks_.clear();
  forward_s_.assign(network_.nodes().size(), 0);
  backward_s_.assign(network_.nodes().size(), 0);
}

std::vector<ProfileRow> LayerTimes::end_profile() {
  if (!marks_.empty()) marks_.back().at.wait();
  add_up();
  marks_.clear();
  is_profiling_ = false;
  std::vector<ProfileRow> rows;
  for (std::size_t i = 0; i < forward_s_.size(); ++i) {
    if (forward_s_[i] + backward_s_[i] > 0) rows.push_back({network_.nodes()[i].name, forward_s_[i], backward_s_[i]});
  }
  return rows;
}

void LayerTimes::begin(runtime::Stream& stream) {
  if (!is_profiling_) return;
  add_up();
  mark(stream, nullptr);
}

void LayerTimes::forward_done(runtime::Stream& stream, std::size_t node) {
  if (is_profiling_) mark(stream, &forward_s_[node]);
}

void LayerTimes::backward_done(runtime::Stream& stream, std::size_t node) {
  if (is_profiling_) mark(stream, &backward_s_[node]);
}

void LayerTimes::mark(runtime::Stream& stream, double* seconds) { marks_.push_back({stream.mark_time(), seconds}); }

void LayerTimes::add_up() {
  for (; marks_.size() > 1 && marks_[1].at.is_done(); marks_.pop_front())
    if (marks_[1].seconds != nullptr) *marks_[1].seconds += marks_[1].at.since(marks_[0].at).value;
}

}  // namespace lockstep::nn
