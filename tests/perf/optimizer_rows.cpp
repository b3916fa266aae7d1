#include "kernel_rows.hpp"
#include "optim/cuda/arena.hpp"
#include "optim/cuda/device_rule.hpp"
#include "optim/optimizer_spec.hpp"

namespace lockstep::perf {
namespace {

using namespace optim::cuda;  // NOLINT(google-build-using-namespace)

constexpr std::size_t of_float = sizeof(float), of_copy = sizeof(core::bfloat16);

template <class T>
DeviceSpan<T> span(T* data, std::size_t n) {
  return DeviceSpan<T>::at(data, n);
}

/// One tensor of n parameters with gradients in float32 and a copy in bf16.
class OptimizerRows {
 public:
  OptimizerRows(KernelArrays& arrays, std::size_t n)
      : arrays_{arrays}, n_{n}, cut_{cut(std::vector<optim::Segment>{{{0, n}}})}, n_pieces_{cut_.pieces.size()} {
    floats_ = [&] { return span(arrays.make<float>(n), n); };
    gradient_ = floats_();
    parameters_ = floats_();
    pieces_ = span<const BlockPiece>(arrays.make(cut_.pieces), n_pieces_);
    ranges_ = span<const PieceRange>(arrays.make(cut_.ranges), 1);
    state_ = span(arrays.make(std::vector<StepState>(1)), 1);
    copy_ = span(arrays.make<core::bfloat16>(n), n);
    partials_ = {doubles(n_pieces_), doubles(n_pieces_)};
    totals_ = {doubles(1), doubles(1)};
    step_ = {.gradient = DeviceSpan<const float>{gradient_},
             .parameters = parameters_,
             .state = {floats_(), floats_()},
             .copy = copy_,
             .pieces = pieces_,
             .done = state_};
    preparation_ = {.step = span(arrays.make(std::vector<core::StepNumbers>(1)), 1),
                    .state = state_,
                    .ranges = ranges_,
                    .squares = totals_[0]};
  }

  std::vector<KernelRow> make() {
    sums();
    updates();
    return std::move(rows_);
  }

 private:
  DeviceSpan<double> doubles(std::size_t n) { return span(arrays_.make<double>(n), n); }
  void add(const std::string& name, std::size_t n_bytes, std::function<void(Stream&)> enqueue) {
    rows_.push_back({name, n_bytes, std::move(enqueue)});
  }

  void sums() {
    add("squared_norms", of_float * n_ + of_pieces() + n_pieces_ * sizeof(double),
        [of = Gradient{DeviceSpan<const float>{gradient_}}, pieces = pieces_, to = partials_[0]](Stream& stream) {
          squared_norms(stream, of, pieces, to);
        });
    add("add_up", n_pieces_ * sizeof(double) + sizeof(PieceRange) + sizeof(double),
        [of = partials_[0], ranges = ranges_, to = totals_[0]](Stream& stream) { add_up(stream, of, ranges, to); });
    add("hash_pieces", of_float * n_ + of_pieces() + n_pieces_ * sizeof(std::uint64_t),
        [of = parameters_, pieces = pieces_, to = span(arrays_.make<std::uint64_t>(n_pieces_), n_pieces_)](
            Stream& stream) { hash_pieces(stream, of, pieces, to); });
    add("cast", (of_float + of_copy) * n_,
        [from = parameters_, to = copy_](Stream& stream) { cast(stream, DeviceSpan<const float>{from}, to); });
    const std::size_t of_states = 2 * sizeof(StepState) + sizeof(core::StepNumbers);
    const DeviceRule& lamb = device_rule(optim::OptimizerKind::lamb);
    const auto numbers = numbers_of(lamb);
    preparation_.spec = optim::default_spec(optim::OptimizerKind::lamb);
    add("prepare", of_states + sizeof(PieceRange) + sizeof(double) + lamb.numbers_bytes,
        [of = preparation_, numbers, &lamb](Stream& stream) { lamb.prepare(stream, of, numbers); });
    add("adapt", of_states - sizeof(StepState) + sizeof(PieceRange) + 2 * sizeof(double) + 2 * lamb.numbers_bytes,
        [of = preparation_, norms = Squares{totals_[0], totals_[1]}, numbers, &lamb](Stream& stream) {
          lamb.adapt(stream, of, norms, numbers);
        });
  }

  /// Each pass with its kernel's name, which differs between rules, but not between those of one arithmetic.
  void updates() {
    for (const optim::OptimizerKind kind : optim::all_optimizer_kinds) {
      if (kind == optim::OptimizerKind::adamw) continue;  // adam's
      const optim::RuleRow& row = optim::rule_row(kind);
      const std::string name{row.description.word};
      if (row.states_without_momentum.size() < row.states.size()) {
        add_passes(name, kind, row.states_without_momentum.size());
        add_passes(name + "_momentum", kind, row.states.size());
      } else {
        add_passes(name, kind, row.states.size());
      }
    }
  }

  void add_passes(const std::string& name, optim::OptimizerKind kind, std::size_t n_states) {
    const DeviceRule& rule = device_rule(kind);
    StepArrays step = step_;
    for (std::size_t i = n_states; i < step.state.size(); ++i) step.state[i] = {};
    const auto numbers = numbers_of(rule);
    const std::size_t of_step = sizeof(StepState) + rule.numbers_bytes + n_pieces_ * sizeof(BlockPiece);
    const bool has_two = rule.measure != nullptr;  // then the first reads the gradient and writes the states
    if (has_two)
      add("measure", (2 + 2 * n_states) * of_float * n_ + of_step + 2 * n_pieces_ * sizeof(double),
          [=, &rule, to = Squares{partials_[0], partials_[1]}](Stream& stream) {
            rule.measure(stream, step, numbers, to);
          });
    add(name, ((has_two ? 2 + n_states : 3 + 2 * n_states) * of_float + of_copy) * n_ + of_step,
        [=, &rule](Stream& stream) { rule.update(stream, step, numbers); });
  }

  DeviceSpan<std::byte> numbers_of(const DeviceRule& rule) {
    return span(arrays_.make(std::vector<std::byte>(rule.numbers_bytes)), rule.numbers_bytes);
  }
  [[nodiscard]] std::size_t of_pieces() const { return n_pieces_ * sizeof(BlockPiece); }

  KernelArrays& arrays_;
  std::size_t n_;
  Cut cut_;
  std::size_t n_pieces_;
  std::function<DeviceSpan<float>()> floats_{};
  DeviceSpan<float> gradient_{}, parameters_{};
  DeviceSpan<const BlockPiece> pieces_{};
  DeviceSpan<const PieceRange> ranges_{};
  DeviceSpan<StepState> state_{};
  DeviceSpan<core::bfloat16> copy_{};
  std::array<DeviceSpan<double>, 2> partials_{}, totals_{};
  StepArrays step_{};
  Preparation preparation_{};
  std::vector<KernelRow> rows_{};
};

}  // namespace

std::vector<KernelRow> optimizer_rows(KernelArrays& arrays, std::size_t n) { return OptimizerRows{arrays, n}.make(); }

}  // namespace lockstep::perf
