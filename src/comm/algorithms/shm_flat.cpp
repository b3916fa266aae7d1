// Flat exchange through shared memory, for short vectors: one message line per rank, and every rank reads all.
#include <utility>
#include <vector>

#include "comm/algorithms/shm_plans.hpp"
#include "comm/algorithms/shm_readers.hpp"
#include "comm/flag.hpp"
#include "comm/loops.hpp"
#include "core/error.hpp"
#include "core/slice.hpp"

namespace lockstep::comm {
namespace {

/// Flag and payload are adjacent, so that a short vector costs one line transfer per peer.
class Mailbox {
 public:
  Mailbox(std::span<std::byte> memory, std::size_t payload_bytes) : flag_{reinterpret_cast<FlagWord*>(memory.data())} {
    payload_ = memory.data() + payload_offset(payload_bytes);
  }
  static std::size_t stride(std::size_t payload_bytes) {
    return core::round_up(payload_offset(payload_bytes) + payload_bytes, flag_stride);
  }

  [[nodiscard]] std::byte* payload() const noexcept { return payload_; }
  void publish(std::uint64_t call) const noexcept { flag_->publish(call); }
  [[nodiscard]] const FlagWord& flag() const noexcept { return *flag_; }

 private:
  static std::size_t payload_offset(std::size_t payload_bytes) { return payload_bytes <= 56 ? 8 : 64; }

  FlagWord* flag_;
  std::byte* payload_;
};

class FlatPlan final : public Plan {
 public:
  FlatPlan(Transport& node, const Call& call, Writing writing)
      : node_{node},
        call_{call},
        rank_{static_cast<std::size_t>(node.rank())},
        n_ranks_{static_cast<std::size_t>(node.n_ranks())},
        divisor_{call.op == ReduceOp::avg ? node.n_ranks() : 1},
        fold_{loops().find_fold(call.dtype, call.op)},
        readers_{n_ranks_, longest_input_bytes(), writing},
        sources_(n_ranks_) {
    const std::size_t payload = longest_input_bytes();
    const std::size_t stride = Mailbox::stride(payload);
    mailboxes_.resize(count_turns(payload, n_ranks_, writing));
    segment_ = node.share(mailboxes_.size() * stride);
    for (std::size_t r = 0; r < n_ranks_; ++r)
      for (std::size_t turn = 0; turn < mailboxes_.size(); ++turn)
        mailboxes_[turn].emplace_back(segment_->part(static_cast<int>(r)).subspan(turn * stride, stride), payload);
  }

  void bind(std::span<const std::byte> input, std::span<std::byte> output) override {
    core::require(input.size() == input_bytes(rank_), "the input has the call's size");
    input_ = input;
    output_ = output;
  }

  void run() override {
    begin();
    wait();
  }

  // A mailbox is written again at least two calls later. By then the rank has seen the flags of the call between, which
  // its peers set only after they had read this one. So two mailboxes are enough, and no rank waits at the end.
  void begin() override {
    ++n_calls_;
    const Mailbox& mine = mailboxes()[rank_];
    readers_.copy_for_all(mine.payload(), input_.data(), input_.size());
    mine.publish(n_calls_);
    next_peer_ = 1;
  }

  bool test() override {
    for (; next_peer_ < n_ranks_; ++next_peer_)
      if (!has_reached(peer())) return false;
    complete();
    return true;
  }

  void wait() override {
    for (; next_peer_ < n_ranks_; ++next_peer_) {
      const std::size_t rank = peer();
      wait_until(node_, [&] { return has_reached(rank); });
    }
    complete();
  }

 private:
  [[nodiscard]] std::size_t input_bytes(std::size_t rank) const {
    return call_.input(static_cast<int>(rank), static_cast<int>(n_ranks_)).count * call_.element_size();
  }
  [[nodiscard]] std::size_t longest_input_bytes() const {
    const bool is_part = call_.collective == Collective::all_gather;
    return (is_part ? call_.longest_part(static_cast<int>(n_ranks_)) : call_.n_elements) * call_.element_size();
  }
  [[nodiscard]] std::vector<Mailbox>& mailboxes() { return mailboxes_[n_calls_ % mailboxes_.size()]; }
  [[nodiscard]] std::size_t peer() const { return (rank_ + next_peer_) % n_ranks_; }
  [[nodiscard]] bool has_reached(std::size_t rank) {
    return readers_.reached(rank, mailboxes()[rank].flag(), n_calls_);
  }

  /// Completes the call once all payloads are there; a second call is harmless.
  void complete() {
    if (next_peer_ > n_ranks_) return;
    next_peer_ = n_ranks_ + 1;
    call_.collective == Collective::all_gather ? gather() : reduce();
  }

  void reduce() {
    const core::Slice wanted = call_.output(static_cast<int>(rank_), static_cast<int>(n_ranks_));
    const std::size_t offset = wanted.offset * call_.element_size();
    for (std::size_t r = 0; r < n_ranks_; ++r)
      sources_[r] = (r == rank_ ? input_.data() : mailboxes()[r].payload()) + offset;
    fold_({.first = output_.data()}, sources_, wanted.count, divisor_);
    for (std::size_t r = 0; r < n_ranks_; ++r) note_reading(r, wanted);
  }

  void gather() {
    for (std::size_t r = 0; r < n_ranks_; ++r) {
      const core::Slice part = call_.part(static_cast<int>(r), static_cast<int>(n_ranks_));
      std::byte* const target = output_.data() + part.offset * call_.element_size();
      if (r == rank_ && target == input_.data()) continue;  // in place
      copy_bytes(target, mailboxes()[r].payload(), part.count * call_.element_size());
      note_reading(r, part);
    }
  }

  void note_reading(std::size_t rank, const core::Slice& slice) const {
    if (rank != rank_) segment_->note_reading(static_cast<int>(rank), slice.count * call_.element_size());
  }

  Transport& node_;
  Call call_;
  std::size_t rank_;
  std::size_t n_ranks_;
  int divisor_;
  Fold fold_;
  Readers readers_;
  std::unique_ptr<SharedSegment> segment_;
  std::vector<std::vector<Mailbox>> mailboxes_;  ///< by turn, by rank
  std::vector<const std::byte*> sources_;
  std::span<const std::byte> input_;
  std::span<std::byte> output_;
  std::uint64_t n_calls_ = 0;
  std::size_t next_peer_ = 1;  ///< distance of the next peer to check
};

}  // namespace

std::unique_ptr<Plan> make_flat_plan(Transport& node, const Call& call, Writing writing) {
  return std::make_unique<FlatPlan>(node, call, writing);
}

}  // namespace lockstep::comm
