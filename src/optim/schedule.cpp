#include "optim/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "optim/expect.hpp"

namespace lockstep::optim {
namespace {

void check_decays(const ScheduleSpec& spec) {
  expect(spec.gamma > 0 && std::isfinite(spec.gamma), "gamma", spec.gamma, "a number greater than 0, such as 0.1");
  if (spec.kind == ScheduleKind::step)
    return expect(spec.step_samples > 0, "step-samples", spec.step_samples, "1 or more samples between decays");
  expect(!spec.milestones.empty(), "milestones", "empty", "the samples seen at each decay");
  const auto unordered = std::adjacent_find(spec.milestones.begin(), spec.milestones.end(), std::greater_equal<>{});
  if (unordered != spec.milestones.end())
    expect(false, "milestones", fmt::format("{}, then {}", unordered[0], unordered[1]), "ascending numbers of samples");
}

void check_course(const ScheduleSpec& spec) {
  expect(spec.total_samples > spec.warmup_samples, "total-samples", spec.total_samples,
         fmt::format("more than the {} samples of the warm-up", spec.warmup_samples));
  expect(spec.min_lr >= 0 && spec.min_lr <= spec.lr, "min-lr", spec.min_lr,
         fmt::format("a number from 0 to lr, {}", spec.lr));
  if (spec.kind == ScheduleKind::polynomial)
    expect(spec.power > 0 && std::isfinite(spec.power), "power", spec.power, "a number greater than 0");
}

double warmup(const ScheduleSpec& spec, double seen) noexcept {
  if (spec.warmup_samples == 0) return 1;
  const double part = std::min(1.0, seen / static_cast<double>(spec.warmup_samples));
  return spec.warmup_factor + (1 - spec.warmup_factor) * part;
}

/// Rises from 0, at the end of the warm-up, to 1, at the end of the schedule and beyond.
double progress(const ScheduleSpec& spec, double seen) noexcept {
  const auto begin = static_cast<double>(spec.warmup_samples);
  return std::clamp((seen - begin) / (static_cast<double>(spec.total_samples) - begin), 0.0, 1.0);
}

/// The remaining fraction of the way from lr down to min_lr, 1 to 0.
double height(const ScheduleSpec& spec, double seen) noexcept {
  if (spec.kind == ScheduleKind::polynomial) return std::pow(1 - progress(spec, seen), spec.power);
  return (1 + std::cos(std::numbers::pi * progress(spec, seen))) / 2;
}

double n_decays(const ScheduleSpec& spec, std::uint64_t samples_seen) noexcept {
  if (spec.kind == ScheduleKind::step) return static_cast<double>(samples_seen / spec.step_samples);
  const auto passed = std::upper_bound(spec.milestones.begin(), spec.milestones.end(), samples_seen);
  return static_cast<double>(passed - spec.milestones.begin());
}

}  // namespace

std::string_view name(ScheduleKind kind) noexcept {
  switch (kind) {
    case ScheduleKind::constant: return "constant";
    case ScheduleKind::step: return "step";
    case ScheduleKind::multistep: return "multistep";
    case ScheduleKind::cosine: return "cosine";
    case ScheduleKind::polynomial: break;
  }
  return "polynomial";
}

void check(const ScheduleSpec& spec) {
  expect(spec.lr >= 0 && std::isfinite(spec.lr), "lr", spec.lr, "a number of 0 or more");
  expect(spec.warmup_factor >= 0 && spec.warmup_factor <= 1, "warmup-factor", spec.warmup_factor,
         "a number from 0 to 1");
  switch (spec.kind) {
    case ScheduleKind::constant: return;
    case ScheduleKind::step:
    case ScheduleKind::multistep: return check_decays(spec);
    case ScheduleKind::cosine:
    case ScheduleKind::polynomial: return check_course(spec);
  }
}

double learning_rate(const ScheduleSpec& spec, std::uint64_t samples_seen) noexcept {
  const auto seen = static_cast<double>(samples_seen);
  const double rise = warmup(spec, seen);
  switch (spec.kind) {
    case ScheduleKind::constant: break;
    case ScheduleKind::step:
    case ScheduleKind::multistep: return rise * spec.lr * std::pow(spec.gamma, n_decays(spec, samples_seen));
    case ScheduleKind::cosine:
    case ScheduleKind::polynomial: return rise * (spec.min_lr + (spec.lr - spec.min_lr) * height(spec, seen));
  }
  return rise * spec.lr;
}

}  // namespace lockstep::optim
