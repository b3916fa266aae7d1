#include "optim/optimizer.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "core/error.hpp"
#include "optim/family.hpp"

namespace lockstep::optim {
namespace {

constexpr std::align_val_t cache_line{64};

/// Reading shorter runs of zeros is faster than skipping them.
constexpr std::size_t least_gap = 1024;

using Array = std::unique_ptr<float[], void (*)(float*)>;

Array make_zeros(std::size_t n) {
  auto* values = static_cast<float*>(::operator new(n * sizeof(float), cache_line));
  std::fill_n(values, n, 0.0F);
  return {values, [](float* array) { ::operator delete(array, cache_line); }};
}

std::unique_ptr<Family> make_family(const OptimizerSpec& spec) {
  switch (spec.kind) {
    case OptimizerKind::sgd: return make_sgd(spec);
    case OptimizerKind::adam:
    case OptimizerKind::adamw: return make_adam(spec);
    case OptimizerKind::adadelta: return make_adadelta(spec);
    case OptimizerKind::lars: return make_lars(spec);
    case OptimizerKind::lamb: break;
  }
  return make_lamb(spec);
}

}  // namespace

/// The arrays of one pass, from which ranges are made.
struct Optimizer::Pass {
  Elements all;

  [[nodiscard]] Range range(const Segment& segment) const {
    Range range{.elements = all, .decays = segment.decays};
    range.elements.offset = segment.slice.offset;
    range.elements.n = segment.slice.count;
    return range;
  }
};

Optimizer::Optimizer(const OptimizerSpec& spec, std::vector<Segment> segments, std::size_t n_elements)
    : n_elements_{n_elements}, segments_{std::move(segments)} {
  check(spec);
  check_segments();
  family_ = make_family(spec);
  join_segments();
  for (const std::string_view name : family_->state_names()) {
    arrays_.push_back(make_zeros(n_elements_));
    state_.push_back({name, {arrays_.back().get(), n_elements_}});
  }
  if (needs_norms()) norms_.resize(2 * segments_.size());
  gradient_norms_.resize(segments_.size());
}

Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;

void Optimizer::check_segments() const {
  std::size_t end = 0;
  for (const Segment& segment : segments_) {
    const auto& [offset, count] = segment.slice;
    core::require(offset >= end && offset <= n_elements_ && count <= n_elements_ - offset,
                  "segments ascend without overlap and lie in their part");
    end = segment.slice.end();
  }
}

void Optimizer::join_segments() {
  for (const Segment& segment : segments_) {
    const bool continues = !needs_norms() && !ranges_.empty() && ranges_.back().decays == segment.decays &&
                           ranges_.back().slice.end() == segment.slice.offset;
    if (continues)
      ranges_.back().slice.count += segment.slice.count;
    else
      ranges_.push_back(segment);
  }
}

bool Optimizer::needs_norms() const noexcept { return family_->needs_norms(); }

Optimizer::Pass Optimizer::start_pass(float scale, Gradients gradients, std::span<float> parameters) {
  core::require(!gradients.empty(), "a step has the gradients of at least one rank");
  sources_.clear();
  for (const auto gradient : gradients) {
    core::require(gradient.size() == n_elements_, "gradients are as long as their part");
    sources_.push_back(gradient.data());
  }
  Elements all{
      .gradients = sources_.data(), .n_gradients = sources_.size(), .scale = scale, .parameters = parameters.data()};
  for (std::size_t i = 0; i < arrays_.size(); ++i) all.state[i] = arrays_[i].get();
  return {all};
}

void Optimizer::step(double lr, float scale, Gradients gradients, std::span<float> parameters) {
  (void)begin_step(scale, gradients, parameters);
  finish_step(lr, scale, gradients, parameters);
}

std::span<double> Optimizer::begin_step(float scale, Gradients gradients, std::span<float> parameters) {
  if (!needs_norms()) return {};
  core::require(parameters.size() == n_elements_, "parameters are as long as their part");
  const Pass pass = start_pass(scale, gradients, parameters);
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const SquaredNorms norms = family_->measure(pass.range(segments_[i]), n_steps_ + 1);
    norms_[2 * i] = norms.parameter;
    norms_[2 * i + 1] = norms.update;
  }
  return norms_;
}

void Optimizer::finish_step(double lr, float scale, Gradients gradients, std::span<float> parameters,
                            std::span<const core::Slice> touched) {
  core::require(parameters.size() == n_elements_, "parameters are as long as their part");
  const Pass pass = start_pass(scale, gradients, parameters);
  ++n_steps_;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    Range range = pass.range(ranges_[i]);
    if (needs_norms()) range.norms = {norms_[2 * i], norms_[2 * i + 1]};
    if (needs_norms() || touched.empty())
      family_->update(range, lr, n_steps_);
    else
      update_touched(range, touched, lr);
  }
}

/// Updates pieces with and without a gradient, in the order of the arena.
void Optimizer::update_touched(const Range& range, std::span<const core::Slice> touched, double lr) const {
  const std::size_t end = range.elements.offset + range.elements.n;
  std::size_t done = range.elements.offset;
  const auto update_until = [&](std::size_t until, bool has_gradient) {
    if (std::min(until, end) <= done) return;
    Range piece = range;
    piece.elements.offset = done;
    piece.elements.n = std::min(until, end) - done;
    if (!has_gradient) piece.elements.n_gradients = 0;
    family_->update(piece, lr, n_steps_);
    done += piece.elements.n;
  };
  for (const core::Slice& part : touched) {
    if (part.offset >= done + least_gap) update_until(part.offset, false);
    update_until(part.end(), true);
  }
  update_until(end, false);
}

std::span<const double> Optimizer::squared_norms(float scale, Gradients gradients) {
  const Pass pass = start_pass(scale, gradients, {});
  for (std::size_t i = 0; i < segments_.size(); ++i)
    gradient_norms_[i] = kernels().squared_gradient(pass.range(segments_[i]).elements);
  return gradient_norms_;
}

}  // namespace lockstep::optim
