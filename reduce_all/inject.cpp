#include "reduce_all/inject.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <csignal>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace lockstep::reduce_all {
namespace {

constexpr std::array stoppable{runtime::Activity::init,   runtime::Activity::setup,        runtime::Activity::warmup,
                               runtime::Activity::timing, runtime::Activity::verification, runtime::Activity::finish};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end != std::string_view::npos) text.remove_prefix(end + 1);
  }
  return parts;
}

template <class Integer>
std::optional<Integer> to_integer(std::string_view text) {
  Integer value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || value < Integer{0}) return std::nullopt;
  return value;
}

std::optional<runtime::Activity> find_phase(std::string_view word) {
  for (const runtime::Activity phase : stoppable) {
    if (runtime::name(phase) == word) return phase;
  }
  return std::nullopt;
}

std::optional<Injection> injection_in(const std::vector<std::string_view>& parts) {
  if (parts.size() < 2) return std::nullopt;
  if (parts[0] == "move") {
    const auto looks = to_integer<std::size_t>(parts[1]);
    if (!looks || *looks == 0 || parts.size() != 2) return std::nullopt;
    return Injection{.kind = Injection::Kind::move, .rank = 0, .phase = runtime::Activity::timing, .index = *looks};
  }
  const auto rank = to_integer<int>(parts[1]);
  if (!rank) return std::nullopt;
  if (parts[0] == "stop" && parts.size() == 3) {
    if (const auto phase = find_phase(parts[2]))
      return Injection{.kind = Injection::Kind::stop, .rank = *rank, .phase = *phase, .index = 0};
  }
  if (parts[0] == "wrong" && parts.size() <= 3) {
    const auto index = parts.size() == 3 ? to_integer<std::size_t>(parts[2]) : std::size_t{0};
    if (index)
      return Injection{
          .kind = Injection::Kind::wrong, .rank = *rank, .phase = runtime::Activity::verification, .index = *index};
  }
  if (parts[0] == "slow" && parts.size() == 3) {
    const auto percent = to_integer<std::size_t>(parts[2]);
    if (percent && *percent > 0)
      return Injection{
          .kind = Injection::Kind::slow, .rank = *rank, .phase = runtime::Activity::timing, .index = *percent};
  }
  return std::nullopt;
}

}  // namespace

Injection parse_injection(std::string_view text) {
  if (const auto injection = injection_in(split(text, ':'))) return *injection;
  core::fail_usage({.what = fmt::format("'{}' is no fault to inject", text),
                    .where = "--inject",
                    .expected = "stop:RANK:PHASE with a phase of init, setup, warmup, timing, verification, finish; "
                                "wrong:RANK[:INDEX]; move:LOOKS; or slow:RANK:PERCENT",
                    .fix = ""});
}

void Drill::enter(runtime::Activity phase, int rank) {
  if (!pending_ || pending_->kind != Injection::Kind::stop || pending_->rank != rank || pending_->phase != phase)
    return;
  pending_.reset();
  std::raise(SIGSTOP);
}

std::optional<std::size_t> Drill::take_wrong(std::size_t n_elements, int rank) {
  if (!pending_ || pending_->kind != Injection::Kind::wrong || pending_->rank != rank) return std::nullopt;
  if (pending_->index >= n_elements) return std::nullopt;
  const std::size_t index = pending_->index;
  pending_.reset();
  return index;
}

void Drill::slow_down(const core::Stopwatch& watch, int rank) const noexcept {
  if (!pending_ || pending_->kind != Injection::Kind::slow || pending_->rank != rank) return;
  const double until = watch.elapsed().value * (1 + static_cast<double>(pending_->index) / 100);
  while (watch.elapsed().value < until) {
  }
}

double Drill::distance(double measured_ns) {
  if (!pending_ || pending_->kind != Injection::Kind::move) return measured_ns;
  return n_looks_++ / pending_->index % 2 == 0 ? 100 : 400;
}

}  // namespace lockstep::reduce_all
