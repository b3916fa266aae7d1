#include "kernel_rows.hpp"
#include "optim/cuda/casts.hpp"
#include "optim/cuda/norms.hpp"
#include "optim/cuda/prepare.hpp"
#include "optim/cuda/updates.hpp"

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
    pieces_ = span<const Piece>(arrays.make(cut_.pieces), n_pieces_);
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
  void add(const char* name, std::size_t n_bytes, std::function<void(Stream&)> enqueue) {
    rows_.push_back({name, n_bytes, std::move(enqueue)});
  }

  void sums() {
    add("squared_norms", of_float * n_ + of_pieces() + n_pieces_ * sizeof(double),
        [of = Gradient{DeviceSpan<const float>{gradient_}}, pieces = pieces_, to = partials_[0]](Stream& stream) {
          squared_norms(stream, of, pieces, to);
        });
    add("add_up", n_pieces_ * sizeof(double) + sizeof(PieceRange) + sizeof(double),
        [of = partials_[0], ranges = ranges_, to = totals_[0]](Stream& stream) { add_up(stream, of, ranges, to); });
    add("cast", (of_float + of_copy) * n_,
        [from = parameters_, to = copy_](Stream& stream) { cast(stream, DeviceSpan<const float>{from}, to); });
    const std::size_t of_states = 2 * sizeof(StepState) + sizeof(core::StepNumbers);
    const auto numbers = numbers_of<optim::LambNumbers>();
    add("prepare", of_states + sizeof(PieceRange) + sizeof(double) + sizeof(optim::LambNumbers),
        [of = preparation_, numbers](Stream& stream) { prepare(stream, of, numbers); });
    add("adapt",
        of_states - sizeof(StepState) + sizeof(PieceRange) + 2 * sizeof(double) + 2 * sizeof(optim::LambNumbers),
        [of = preparation_, norms = Norms{totals_[0], totals_[1]}, numbers](Stream& stream) {
          adapt(stream, of, norms, numbers);
        });
  }

  /// With this many arrays of state, read and written.
  template <class Numbers>
  void add_update(const char* name, int n_states, void (*update)(Stream&, const Step&, DeviceSpan<const Numbers>)) {
    Step step = step_;
    for (std::size_t i = static_cast<std::size_t>(n_states); i < step.state.size(); ++i) step.state[i] = {};
    add(name, ((3 + 2 * static_cast<std::size_t>(n_states)) * of_float + of_copy) * n_ + of_step<Numbers>(),
        [=, numbers = numbers_of<Numbers>()](Stream& stream) { update(stream, step, numbers); });
  }

  void updates() {
    add_update<optim::SgdNumbers>("sgd", 0, sgd);
    add_update<optim::SgdNumbers>("sgd_momentum", 1, sgd);
    add_update<optim::AdamNumbers>("adam", 2, adam);
    add_update<optim::AdadeltaNumbers>("adadelta", 2, adadelta);
    add_update<optim::LarsNumbers>("lars", 1, lars);
    const auto numbers = numbers_of<optim::LambNumbers>();
    add("lamb_moments", 6 * of_float * n_ + of_step<optim::LambNumbers>() + 2 * n_pieces_ * sizeof(double),
        [step = step_, numbers, to = LambPartials{partials_[0], partials_[1]}](Stream& stream) {
          lamb_moments(stream, step, numbers, to);
        });
    add("lamb", (4 * of_float + of_copy) * n_ + of_step<optim::LambNumbers>(),
        [step = step_, numbers](Stream& stream) { lamb(stream, step, numbers); });
  }

  template <class Numbers>
  DeviceSpan<Numbers> numbers_of() {
    return span(arrays_.make(std::vector<Numbers>(1)), 1);
  }
  [[nodiscard]] std::size_t of_pieces() const { return n_pieces_ * sizeof(Piece); }
  template <class Numbers>
  [[nodiscard]] std::size_t of_step() const {
    return sizeof(StepState) + sizeof(Numbers) + of_pieces();
  }

  KernelArrays& arrays_;
  std::size_t n_;
  Cut cut_;
  std::size_t n_pieces_;
  std::function<DeviceSpan<float>()> floats_{};
  DeviceSpan<float> gradient_{}, parameters_{};
  DeviceSpan<const Piece> pieces_{};
  DeviceSpan<const PieceRange> ranges_{};
  DeviceSpan<StepState> state_{};
  DeviceSpan<core::bfloat16> copy_{};
  std::array<DeviceSpan<double>, 2> partials_{}, totals_{};
  Step step_{};
  Preparation preparation_{};
  std::vector<KernelRow> rows_{};
};

}  // namespace

std::vector<KernelRow> optimizer_rows(KernelArrays& arrays, std::size_t n) { return OptimizerRows{arrays, n}.make(); }

}  // namespace lockstep::perf
