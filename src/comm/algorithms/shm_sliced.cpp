// Sliced exchange through shared memory, for long vectors.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "comm/algorithms/shm_plans.hpp"
#include "comm/algorithms/shm_readers.hpp"
#include "comm/flag.hpp"
#include "comm/loops.hpp"
#include "comm/schedule.hpp"
#include "runtime/memory.hpp"

namespace lockstep::comm {
namespace {

/// One rank's shared memory: two flags, then for each turn the pieces it copies in for `n_owners` and the one it owns.
class Layout {
 public:
  Layout(std::size_t n_owners, std::size_t n_ranks, std::size_t longest_piece_bytes, Writing writing)
      : n_owners_{n_owners},
        stride_{(longest_piece_bytes + flag_stride - 1) / flag_stride * flag_stride},
        n_turns_{count_turns((n_owners + 1) * stride_, n_ranks, writing)} {}

  [[nodiscard]] std::size_t n_turns() const { return n_turns_; }
  [[nodiscard]] std::size_t bytes() const { return 2 * flag_stride + n_turns_ * (n_owners_ + 1) * stride_; }
  static Flag& arrived(std::span<std::byte> part) { return *reinterpret_cast<Flag*>(part.data()); }
  static Flag& finished(std::span<std::byte> part) { return *reinterpret_cast<Flag*>(part.data() + flag_stride); }
  [[nodiscard]] std::byte* copied_in(std::span<std::byte> part, std::size_t turn, std::size_t owner) const {
    return part.data() + 2 * flag_stride + (turn * (n_owners_ + 1) + owner) * stride_;
  }
  [[nodiscard]] std::byte* result(std::span<std::byte> part, std::size_t turn) const {
    return copied_in(part, turn, n_owners_);
  }

 private:
  std::size_t n_owners_;
  std::size_t stride_;
  std::size_t n_turns_;
};

/// The stages of a chunk on a rank. Flags count chunks since the plan was made.
enum class Stage {
  copy_in,   ///< copies the pieces of other owners to its shared memory: arrived
  fold,      ///< owner: adds up its piece once all ranks have arrived
  finish,    ///< owner: has the result in its shared memory: finished
  copy_out,  ///< copies the pieces of the owners that have finished
};

class SlicedPlan final : public Plan {
 public:
  SlicedPlan(Transport& node, const Call& call, const Slicing& slicing)
      : node_{node},
        call_{call},
        slicing_{slicing},
        rank_{static_cast<std::size_t>(node.rank())},
        n_ranks_{static_cast<std::size_t>(node.n_ranks())},
        n_owners_{static_cast<std::size_t>(slicing.n_owners)},
        n_chunks_{count_segments(call, longest(), slicing.piece_bytes)},
        layout_{reduces() ? n_owners_ : 0, n_ranks_, bytes(core::partition(longest(), n_chunks_, 0)), slicing.writing},
        is_large_{2 * n_ranks_ * call.bytes().value > runtime::last_level_cache().value},
        fold_{loops().find_fold(call.dtype, call.op)},
        divide_{loops().find_divide(call.dtype)},
        copy_streaming_{loops().copy_streaming},
        segment_{node.share(layout_.bytes())},
        readers_{n_ranks_, bytes(core::partition(longest(), n_chunks_, 0)), slicing.writing},
        sources_(n_ranks_) {
    for (std::size_t r = 0; r < n_ranks_; ++r) parts_.push_back(segment_->part(static_cast<int>(r)));
    if (slicing_.finish_across)
      order_for_overlap();
    else
      order_for_latency();
  }

  void bind(std::span<const std::byte> input, std::span<std::byte> output) override {
    input_ = input;
    output_ = output;
  }

  void run() override {
    next_ = 0;
    wait();
  }
  void begin() override {
    next_ = 0;
    static_cast<void>(test());
  }
  bool test() override { return advance(false); }
  void wait() override { static_cast<void>(advance(true)); }

 private:
  struct Action {
    Stage stage;
    std::size_t chunk;
  };

  [[nodiscard]] core::Slice slice(std::size_t owner) const {
    return call_.part(static_cast<int>(owner), static_cast<int>(n_owners_));
  }
  [[nodiscard]] std::size_t longest() const { return call_.longest_part(static_cast<int>(n_owners_)); }
  [[nodiscard]] core::Slice piece(std::size_t chunk, std::size_t owner) const {
    return core::partition(slice(owner), n_chunks_, chunk);
  }
  [[nodiscard]] std::size_t bytes(const core::Slice& s) const { return s.count * call_.element_size(); }
  [[nodiscard]] bool is_owner() const { return rank_ < n_owners_; }
  [[nodiscard]] bool reduces() const { return call_.collective != Collective::all_gather; }
  [[nodiscard]] bool gathers() const { return call_.collective != Collective::reduce_scatter; }
  [[nodiscard]] std::uint64_t count(std::size_t chunk) const { return n_done_ + chunk; }
  [[nodiscard]] std::size_t turn(std::size_t chunk) const { return count(chunk) % layout_.n_turns(); }

  /// Copies in one chunk ahead, then completes each chunk.
  void order_for_latency() {
    actions_.push_back({Stage::copy_in, 0});
    for (std::size_t c = 0; c < n_chunks_; ++c) {
      if (c + 1 < n_chunks_) actions_.push_back({Stage::copy_in, c + 1});
      for (const Stage stage : {Stage::fold, Stage::finish, Stage::copy_out}) actions_.push_back({stage, c});
    }
  }

  /// Folds one chunk ahead as well, while the previous one travels between the nodes.
  void order_for_overlap() {
    for (std::size_t c = 0; c < std::min<std::size_t>(2, n_chunks_); ++c) actions_.push_back({Stage::copy_in, c});
    actions_.push_back({Stage::fold, 0});
    for (std::size_t c = 0; c < n_chunks_; ++c) {
      if (c + 1 < n_chunks_) actions_.push_back({Stage::fold, c + 1});
      for (const Stage stage : {Stage::finish, Stage::copy_out}) actions_.push_back({stage, c});
      if (c + 2 < n_chunks_) actions_.push_back({Stage::copy_in, c + 2});
    }
    if (!is_owner()) return;
    for (std::size_t c = 0; c < n_chunks_; ++c) {
      auto& plan = across_[c % 2][piece(c, rank_).count];
      if (!plan) plan = slicing_.finish_across(piece(c, rank_).count);
    }
  }

  bool advance(bool may_wait) {
    if (next_ > actions_.size()) return true;
    for (; next_ < actions_.size(); ++next_)
      if (!perform(actions_[next_], may_wait)) return false;
    n_done_ += n_chunks_;
    ++next_;  // past the end: this call is complete
    return true;
  }

  bool perform(const Action& action, bool may_wait) {
    switch (action.stage) {
      case Stage::copy_in: return copy_in(action.chunk, may_wait);
      case Stage::fold: return !is_owner() || fold(action.chunk, may_wait);
      case Stage::finish: return !is_owner() || finish(action.chunk, may_wait);
      case Stage::copy_out: break;
    }
    return !gathers() || copy_out(action.chunk, may_wait);
  }

  template <class Reached>
  bool await(bool may_wait, Reached reached) {
    if (!may_wait) return reached();
    wait_until(node_, [&] {
      if (travelling_ != nullptr) static_cast<void>(travelling_->test());  // other nodes may wait for our messages
      return reached();
    });
    return true;
  }
  bool await_finished(std::size_t owner, std::uint64_t n_chunks, bool may_wait) {
    return await(may_wait, [&] { return Layout::finished(parts_[owner]).reached(n_chunks); });
  }

  bool copy_in(std::size_t c, bool may_wait) {
    if (reduces()) {
      // The memory was last used two chunks ago or earlier: every owner must have folded that one.
      const std::uint64_t needed = count(c) > 0 ? count(c) - 1 : 0;
      for (std::size_t owner = 0; owner < n_owners_; ++owner)
        if (owner != rank_ && !await_finished(owner, needed, may_wait)) return false;
      for (std::size_t step = 1; step <= n_owners_; ++step) {
        const std::size_t owner = (rank_ + step) % n_owners_;
        if (owner == rank_) continue;
        const core::Slice from = piece(c, owner);
        readers_.copy_for(owner, layout_.copied_in(parts_[rank_], turn(c), owner),
                          input_.data() + from.offset * call_.element_size(), bytes(from));
      }
    }
    // This also says that the rank has copied out the chunk before the last, so owners may overwrite it.
    Layout::arrived(parts_[rank_]).publish(count(c) + 1);
    return true;
  }

  bool fold(std::size_t c, bool may_wait) {
    for (std::size_t r = 0; r < n_ranks_; ++r)
      if (r != rank_ && !await(may_wait, [&] { return readers_.reached(r, Layout::arrived(parts_[r]), count(c) + 1); }))
        return false;
    const core::Slice mine = piece(c, rank_);
    std::byte* const shared = layout_.result(parts_[rank_], turn(c));
    std::byte* const own = own_output(mine);
    if (!reduces()) {
      const std::byte* const from = input_.data() + (mine.offset - slice(rank_).offset) * call_.element_size();
      readers_.copy_for_all(shared, from, bytes(mine));
      if (own != from) copy_bytes(own, from, bytes(mine));
      return true;
    }
    for (std::size_t r = 0; r < n_ranks_; ++r) {
      sources_[r] = r == rank_ ? input_.data() + mine.offset * call_.element_size()
                               : layout_.copied_in(parts_[r], turn(c), rank_);
      if (r != rank_) segment_->note_reading(static_cast<int>(r), bytes(mine));
    }
    fold_(fold_target(own, shared), sources_, mine.count, slicing_.finish_across ? 1 : slicing_.divisor);
    if (slicing_.finish_across) send_off(c, shared);
    return true;
  }

  [[nodiscard]] FoldTarget fold_target(std::byte* own, std::byte* shared) const {
    if (slicing_.finish_across) return {.first = shared};
    if (gathers() && readers_.any_is_far()) return {.first = shared, .second = own, .stream = true};
    return {.first = own, .second = gathers() ? shared : nullptr, .stream = is_large_};
  }

  void send_off(std::size_t c, std::byte* shared) {
    Plan& plan = across(c);
    plan.bind({shared, bytes(piece(c, rank_))}, {shared, bytes(piece(c, rank_))});
    plan.start({});
    travelling_ = &plan;
  }

  bool finish(std::size_t c, bool may_wait) {
    if (slicing_.finish_across) {
      Plan& plan = across(c);
      if (may_wait)
        plan.wait();
      else if (!plan.test())
        return false;
      if (travelling_ == &plan) travelling_ = nullptr;
      std::byte* const shared = layout_.result(parts_[rank_], turn(c));
      if (slicing_.divisor != 1) divide_(shared, shared, piece(c, rank_).count, slicing_.divisor);
      copy_bytes(own_output(piece(c, rank_)), shared, bytes(piece(c, rank_)));
    }
    Layout::finished(parts_[rank_]).publish(count(c) + 1);
    return true;
  }

  bool copy_out(std::size_t c, bool may_wait) {
    for (; n_copied_out_ < n_owners_; ++n_copied_out_) {
      const std::size_t owner = (rank_ + 1 + n_copied_out_) % n_owners_;
      if (owner == rank_) continue;
      if (!await_finished(owner, count(c) + 1, may_wait)) return false;
      const core::Slice to = piece(c, owner);
      std::byte* const target = output_.data() + to.offset * call_.element_size();
      const std::byte* const source = layout_.result(parts_[owner], turn(c));
      if (is_large_)
        copy_streaming_(target, source, bytes(to));
      else
        copy_bytes(target, source, bytes(to));
      segment_->note_reading(static_cast<int>(owner), bytes(to));
    }
    n_copied_out_ = 0;
    return true;
  }

  [[nodiscard]] Plan& across(std::size_t c) { return *across_[c % 2].at(piece(c, rank_).count); }

  /// Where this rank's own piece belongs in its output.
  [[nodiscard]] std::byte* own_output(const core::Slice& mine) const {
    const std::size_t start = gathers() ? 0 : slice(rank_).offset;
    return output_.data() + (mine.offset - start) * call_.element_size();
  }

  Transport& node_;
  Call call_;
  Slicing slicing_;
  std::size_t rank_;
  std::size_t n_ranks_;
  std::size_t n_owners_;
  std::size_t n_chunks_;
  Layout layout_;
  bool is_large_;
  Fold fold_;
  Divide divide_;
  void (*copy_streaming_)(std::byte*, const std::byte*, std::size_t);
  std::unique_ptr<SharedSegment> segment_;
  Readers readers_;
  std::vector<std::span<std::byte>> parts_;
  std::vector<const std::byte*> sources_;
  std::vector<Action> actions_;
  std::map<std::size_t, std::unique_ptr<Plan>> across_[2];  ///< by elements; two chunks may travel at a time
  Plan* travelling_ = nullptr;
  std::span<const std::byte> input_;
  std::span<std::byte> output_;
  std::uint64_t n_done_ = 0;  ///< chunks of earlier calls
  std::size_t next_ = 0;
  std::size_t n_copied_out_ = 0;
};

}  // namespace

std::unique_ptr<Plan> make_sliced_plan(Transport& node, const Call& call, const Slicing& slicing) {
  return std::make_unique<SlicedPlan>(node, call, slicing);
}

}  // namespace lockstep::comm
