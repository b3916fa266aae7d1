#include "parallel/control_word.hpp"

#include <cmath>
#include <limits>
#include <span>

#include "comm/registry.hpp"

namespace lockstep::parallel {
namespace {

// All values travel as sums of float64, which are exact for counts and for integers in parts of at most 32 bits.
enum Word : std::size_t {
  loss,
  n_samples,
  n_top1,
  n_top5,
  n_stop,
  n_save,
  n_not_finite,
  n_changed,
  n_saved,
  ledger_low,
  ledger_high,
  n_replicas,
  replica_low,
  replica_high,
  replica_low_squared,
  replica_high_squared,
  n_used,
};

constexpr std::uint64_t low_half(std::uint64_t value, int bits) noexcept {
  return value & ((std::uint64_t{1} << bits) - 1);
}

std::uint64_t to_integer(double sum) noexcept { return static_cast<std::uint64_t>(sum); }

/// Whether n values with this sum and this sum of squares are all equal (Cauchy and Schwarz), so sums alone suffice.
/// Exact for up to 65,535 values of 16 bits.
bool all_equal(double n, double sum, double sum_of_squares) noexcept {
  return to_integer(n) * to_integer(sum_of_squares) == to_integer(sum) * to_integer(sum);
}

template <class T>
void attach(comm::Plan& plan, const T& input, T& output) {
  plan.bind(std::as_bytes(std::span{&input, 1}), std::as_writable_bytes(std::span{&output, 1}));
}

}  // namespace

ControlWord::ControlWord(comm::Transport& world, bool is_deterministic)
    : rank_{world.rank()},
      sum_{comm::make_plan(world,
                           {.dtype = core::DType::float64, .n_elements = n_words, .is_order_fixed = is_deterministic})},
      min_{comm::make_plan(world, {.dtype = core::DType::uint64, .op = comm::ReduceOp::min, .n_elements = 1})} {
  static_assert(n_used == n_words);
  attach(*sum_, mine_, sums_);
  attach(*min_, candidate_, first_);
}

std::optional<StepAgreement> ControlWord::exchange(const StepReport& report) {
  const auto before = finish();
  mine_ = encode(report);
  candidate_ = static_cast<std::uint64_t>(rank_) | (report.found_parameter ? 0 : std::uint64_t{1} << 32);
  if (!report.not_finite) candidate_ = std::numeric_limits<std::uint64_t>::max();
  sum_->start({});
  is_under_way_ = true;
  return before;
}

std::optional<StepAgreement> ControlWord::finish() {
  if (!is_under_way_) return std::nullopt;
  sum_->wait();
  is_under_way_ = false;
  StepAgreement agreement = decode(sums_);
  // This is rare and all ranks know it, so a second all-reduce finds the place.
  if (sums_[n_not_finite] > 0) agreement.not_finite = find_first();
  return agreement;
}

int ControlWord::find_first() {
  min_->run();
  return static_cast<int>(low_half(first_, 32));
}

ControlWord::Words ControlWord::encode(const StepReport& report) noexcept {
  Words words{};
  words[loss] = report.loss;
  words[n_samples] = static_cast<double>(report.n);
  words[n_top1] = static_cast<double>(report.n_top1);
  words[n_top5] = static_cast<double>(report.n_top5);
  words[n_stop] = report.stop ? 1 : 0;
  words[n_save] = report.save ? 1 : 0;
  words[n_not_finite] = report.not_finite ? 1 : 0;
  words[n_changed] = report.changed ? 1 : 0;
  words[n_saved] = static_cast<double>(report.n_saved);
  words[ledger_low] = static_cast<double>(low_half(report.ledger, 32));
  words[ledger_high] = static_cast<double>(report.ledger >> 32);
  if (report.replica) {
    words[n_replicas] = 1;
    words[replica_low] = static_cast<double>(low_half(*report.replica, 16));
    words[replica_high] = static_cast<double>(*report.replica >> 16);
    words[replica_low_squared] = words[replica_low] * words[replica_low];
    words[replica_high_squared] = words[replica_high] * words[replica_high];
  }
  return words;
}

StepAgreement ControlWord::decode(const Words& sums) noexcept {
  return {.loss = sums[loss],
          .n = to_integer(sums[n_samples]),
          .n_top1 = to_integer(sums[n_top1]),
          .n_top5 = to_integer(sums[n_top5]),
          .stop = sums[n_stop] > 0,
          .save = sums[n_save] > 0,
          .changed = sums[n_changed] > 0,
          .n_saved = to_integer(sums[n_saved]),
          .ledger = to_integer(sums[ledger_low]) + (to_integer(sums[ledger_high]) << 32),
          .replicas_agree = all_equal(sums[n_replicas], sums[replica_low], sums[replica_low_squared]) &&
                            all_equal(sums[n_replicas], sums[replica_high], sums[replica_high_squared])};
}

}  // namespace lockstep::parallel
