#include "support/collective_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace lockstep::support {
namespace {

using comm::Collective;
using comm::ReduceOp;

/// What rank r contributes as element i in the given call: small, different between ranks, exact in every type.
double contribution(ReduceOp op, int rank, int n_ranks, std::size_t i, int turn) {
  const auto r = static_cast<std::size_t>(rank);
  const auto t = static_cast<std::size_t>(turn);
  if (op == ReduceOp::prod) return (r + i + t) % static_cast<std::size_t>(n_ranks) < 3 ? 2 : 1;
  return static_cast<double>((r * 5 + i * 3 + t) % 7 + (i % 11 == 0 ? 1 : 0));
}

double combined(ReduceOp op, int n_ranks, std::size_t i, int turn) {
  double result = contribution(op, 0, n_ranks, i, turn);
  for (int r = 1; r < n_ranks; ++r) {
    const double next = contribution(op, r, n_ranks, i, turn);
    switch (op) {
      case ReduceOp::sum:
      case ReduceOp::avg: result += next; break;
      case ReduceOp::prod: result *= next; break;
      case ReduceOp::min: result = std::min(result, next); break;
      case ReduceOp::max: result = std::max(result, next); break;
    }
  }
  return result;
}

template <class T>
T to(double value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return T{static_cast<float>(value)};
}

template <class T>
T average(double sum, int n_ranks) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<long>(sum) / n_ranks);
  if constexpr (std::is_same_v<T, double>) return sum / n_ranks;
  return to<T>(static_cast<double>(static_cast<float>(sum) / static_cast<float>(n_ranks)));
}

template <class T>
T expected(const comm::Call& call, int n_ranks, std::size_t i, int turn) {
  if (call.collective == Collective::all_gather) {
    int owner = 0;
    while (core::intersection(call.part(owner, n_ranks), {i, 1}).empty()) ++owner;
    return to<T>(contribution(call.op, owner, n_ranks, i, turn));
  }
  const double value = combined(call.op, n_ranks, i, turn);
  return call.op == ReduceOp::avg ? average<T>(value, n_ranks) : to<T>(value);
}

void go(comm::Plan& plan, Mode mode) {
  if (mode == Mode::run) return plan.run();
  plan.start({});
  if (mode == Mode::start_wait) return plan.wait();
  while (!plan.test()) std::this_thread::yield();
}

template <class T>
void check_as(comm::Transport& transport, const CollectiveCase& which) {
  const int rank = transport.rank();
  const int n_ranks = transport.n_ranks();
  const core::Slice input_slice = which.call.input(rank, n_ranks);
  const core::Slice output_slice = which.call.output(rank, n_ranks);
  const auto plan = comm::make_plan(*which.algorithm, transport, which.call);
  std::vector<T> whole(which.call.n_elements);  // in place: holds both sides at their places
  std::vector<T> separate_output(output_slice.count);
  const std::span<T> input = std::span{whole}.subspan(input_slice.offset, input_slice.count);
  const std::span<T> output =
      which.in_place ? std::span{whole}.subspan(output_slice.offset, output_slice.count) : std::span{separate_output};
  plan->bind(std::as_bytes(input), std::as_writable_bytes(output));
  for (int turn = 0; turn < which.n_calls; ++turn) {
    for (auto* side : {&whole, &separate_output})
      std::ranges::fill(std::as_writable_bytes(std::span{*side}), std::byte{0xA5});
    for (std::size_t i = 0; i < input.size(); ++i)
      input[i] = to<T>(contribution(which.call.op, rank, n_ranks, input_slice.offset + i, turn));
    go(*plan, which.mode);
    for (std::size_t i = 0; i < output.size(); ++i) {
      const T wanted = expected<T>(which.call, n_ranks, output_slice.offset + i, turn);
      if (std::memcmp(&output[i], &wanted, sizeof(T)) != 0)
        throw std::runtime_error(fmt::format(
            "{}: rank {} of {}, call {}, element {} is {}, expected {}", describe(which), rank, n_ranks, turn, i,
            static_cast<double>(static_cast<float>(output[i])), static_cast<double>(static_cast<float>(wanted))));
    }
  }
}

}  // namespace

std::string describe(const CollectiveCase& which) {
  return fmt::format("{} {} {} {} of {} elements{}{}", which.algorithm->name, comm::name(which.call.collective),
                     comm::name(which.call.op), core::name(which.call.dtype), which.call.n_elements,
                     which.in_place ? ", in place" : "", which.mode == Mode::run ? "" : ", started");
}

void check(comm::Transport& transport, const CollectiveCase& which) {
  core::visit(which.call.dtype, [&]<class T>(std::type_identity<T>) { check_as<T>(transport, which); });
}

}  // namespace lockstep::support
