#include "data/importers/pickle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "data/importers/text.hpp"

namespace lockstep::data {
namespace {

using PickleKind = PickleValue::Kind;

constexpr std::uint64_t most_steps = std::uint64_t{1} << 20;  // CIFAR's largest file has some 250,000
constexpr std::uint64_t longest_text = 4096;
constexpr std::size_t most_dimensions = 32;
constexpr std::size_t read_together = 4096;

/// The only names that are let through, each as the number of a value of kind global.
constexpr std::array<std::string_view, 4> globals{
    "numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct", "numpy.ndarray", "numpy.dtype"};
constexpr std::int64_t ndarray = 2, dtype_class = 3;

[[noreturn]] void fail(const Input& input, std::uint64_t at, const std::string& what) {
  core::fail_usage({.what = what,
                    .where = fmt::format("{}, byte {}", input.name(), at),
                    .expected =
                        "a pickle of protocol 1 or 2 with numbers, texts, lists, dictionaries and arrays of bytes, "
                        "as CIFAR's are; nothing else is read, and nothing is run",
                    .fix = "fetch the archive from its original place again, or take the binary version"});
}

/// The bytes of an input, one after another.
class Cursor {
 public:
  explicit Cursor(const Input& input) : input_{input} {}

  [[nodiscard]] std::uint64_t place() const noexcept { return begin_ + at_; }

  unsigned byte() {
    if (at_ == buffer_.size()) refill();
    return std::to_integer<unsigned>(buffer_[at_++]);
  }
  /// The lowest byte first.
  std::uint64_t number(std::size_t n_bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < n_bytes; ++i) value |= std::uint64_t{byte()} << (8 * i);
    return value;
  }
  std::int64_t signed_number(std::size_t n_bytes) {
    if (n_bytes == 0) return 0;
    const auto unused = 64 - 8 * static_cast<unsigned>(n_bytes);
    return static_cast<std::int64_t>(number(n_bytes) << unused) >> unused;
  }
  std::string line() {
    constexpr std::size_t longest = 64;
    std::string text;
    for (unsigned c = 0; (c = byte()) != '\n';) {
      if (text.size() == longest) fail(input_, place(), "a name that does not end");
      text.push_back(static_cast<char>(c));
    }
    return text;
  }
  void skip(std::uint64_t n) {
    const std::uint64_t left = input_.size() - place();
    if (n > left) fail(input_, place(), fmt::format("a text of {} bytes, where {} are left", n, left));
    begin_ = place() + n;
    at_ = 0;
    buffer_.clear();
  }
  [[nodiscard]] bool is_at_end() const { return place() == input_.size(); }

 private:
  void refill() {
    begin_ += std::exchange(at_, 0);
    if (begin_ == input_.size()) fail(input_, begin_, "the pickle ends before its content");
    buffer_.resize(std::min<std::uint64_t>(read_together, input_.size() - begin_));
    input_.read_at(begin_, buffer_);
  }

  const Input& input_;
  std::uint64_t begin_ = 0;  ///< of the buffer
  std::size_t at_ = 0;
  std::vector<std::byte> buffer_{};
};

/// The machine that a pickle is a program for, less everything that could do something.
class Machine {
 public:
  Machine(const Input& input, std::vector<PickleValue>& values) : input_{input}, cursor_{input}, values_{values} {}

  /// The number of the outermost value.
  std::uint32_t run() {
    for (std::uint64_t n = 0; n < most_steps; ++n) {
      step_ = cursor_.place();
      const unsigned opcode = cursor_.byte();
      if (opcode == '.') return finish();
      if (!push_value(opcode) && !build(opcode)) refuse(opcode);
    }
    fail_here("more than a million values");
  }

 private:
  std::uint32_t finish() {
    const std::uint32_t root = pop();
    if (!stack_.empty() || !marks_.empty()) fail_here("an end with values left over");
    if (!cursor_.is_at_end()) fail_here("an end before the end of the file");
    return root;
  }

  [[noreturn]] void refuse(unsigned opcode) {
    const bool is_shown = opcode > ' ' && opcode <= '~';
    fail_here(fmt::format("opcode {:#04x}{}", opcode,
                          is_shown ? fmt::format(" ('{}')", static_cast<char>(opcode)) : std::string{}));
  }

  /// What stands for itself; false if it is another opcode.
  bool push_value(unsigned opcode) {
    switch (opcode) {
      case 'N': push({}); return true;
      case 0x88: push_number(1); return true;
      case 0x89: push_number(0); return true;
      case 'K': push_number(static_cast<std::int64_t>(cursor_.number(1))); return true;
      case 'M': push_number(static_cast<std::int64_t>(cursor_.number(2))); return true;
      case 'J': push_number(cursor_.signed_number(4)); return true;
      case 0x8a: push_long(cursor_.number(1)); return true;
      case 'U': push_text(cursor_.number(1)); return true;
      case 'T':
      case 'X': push_text(cursor_.number(4)); return true;
      case ']': push({.kind = PickleKind::list}); return true;
      case '}': push({.kind = PickleKind::dictionary}); return true;
      case ')': push({.kind = PickleKind::tuple}); return true;
      case 'c': push_global(); return true;
      default: return false;
    }
  }

  /// What works on values that are there; false if it is another opcode.
  bool build(unsigned opcode) {
    switch (opcode) {
      case 0x80: check_protocol(cursor_.number(1)); return true;
      case '(': marks_.push_back(stack_.size()); return true;
      case 'q': memo_[cursor_.number(1)] = top(); return true;
      case 'r': memo_[cursor_.number(4)] = top(); return true;
      case 'h': push_remembered(cursor_.number(1)); return true;
      case 'j': push_remembered(cursor_.number(4)); return true;
      case 'a': append(PickleKind::list, pop_last(1)); return true;
      case 'e': append(PickleKind::list, pop_marked()); return true;
      case 's': append(PickleKind::dictionary, pop_last(2)); return true;
      case 'u': append(PickleKind::dictionary, pop_marked()); return true;
      case 't': push_tuple(pop_marked()); return true;
      case 0x85: push_tuple(pop_last(1)); return true;
      case 0x86: push_tuple(pop_last(2)); return true;
      case 0x87: push_tuple(pop_last(3)); return true;
      case 'R': reconstruct(); return true;
      case 'b': set_state(); return true;
      default: return false;
    }
  }

  void check_protocol(std::uint64_t version) {
    if (version > 2) fail_here(fmt::format("protocol {}", version));
  }

  void push(PickleValue value) {
    values_.push_back(std::move(value));
    stack_.push_back(static_cast<std::uint32_t>(values_.size() - 1));
  }
  void push_number(std::int64_t number) { push({.kind = PickleKind::number, .number = number}); }
  void push_long(std::uint64_t n_bytes) {
    if (n_bytes > 8) fail_here(fmt::format("a number of {} bytes", n_bytes));
    push_number(cursor_.signed_number(n_bytes));
  }
  void push_text(std::uint64_t n_bytes) {
    push({.kind = PickleKind::text, .offset = cursor_.place(), .bytes = n_bytes});
    cursor_.skip(n_bytes);
  }
  void push_tuple(std::vector<std::uint32_t> items) { push({.kind = PickleKind::tuple, .items = std::move(items)}); }
  void push_remembered(std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) fail_here(fmt::format("value {} is used before it is stored", key));
    stack_.push_back(found->second);
  }
  void push_global() {
    const std::string module = cursor_.line();
    const std::string name = fmt::format("{}.{}", module, cursor_.line());
    const auto found = std::find(globals.begin(), globals.end(), name);
    if (found == globals.end()) fail_here(fmt::format("it names {}, which is not run", in_quotes(name)));
    push({.kind = PickleKind::global, .number = found - globals.begin()});
  }

  /// Values above the last mark are all that can be taken.
  [[nodiscard]] std::size_t n_free() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }
  [[nodiscard]] std::uint32_t top() const {
    if (n_free() == 0) fail_here("a missing value");
    return stack_.back();
  }
  std::uint32_t pop() { return pop_last(1).front(); }
  std::vector<std::uint32_t> pop_last(std::size_t n) {
    if (n_free() < n) fail_here("a missing value");
    const std::vector<std::uint32_t> items{stack_.end() - static_cast<std::ptrdiff_t>(n), stack_.end()};
    stack_.resize(stack_.size() - n);
    return items;
  }
  std::vector<std::uint32_t> pop_marked() {
    if (marks_.empty()) fail_here("a missing mark");
    std::vector<std::uint32_t> items = pop_last(n_free());
    marks_.pop_back();
    return items;
  }

  void append(PickleKind kind, const std::vector<std::uint32_t>& items) {
    PickleValue& target = values_[top()];
    if (target.kind != kind || (kind == PickleKind::dictionary && items.size() % 2 != 0))
      fail_here("items without a list");
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  /// The value if it is of this kind, as part `i` of a tuple.
  [[nodiscard]] const PickleValue& part(const PickleValue& tuple, std::size_t i, PickleKind kind) const {
    if (tuple.kind != PickleKind::tuple || i >= tuple.items.size() || values_[tuple.items[i]].kind != kind)
      fail_here("an array that NumPy does not write like this");
    return values_[tuple.items[i]];
  }

  /// _reconstruct(ndarray, ...) is an array without content, dtype("u1", ...) its type: the only calls there may be.
  void reconstruct() {
    const PickleValue& arguments = values_[pop()];
    const PickleValue& called = values_[pop()];
    if (called.kind != PickleKind::global || called.number == ndarray)
      fail_here("a call of something other than a NumPy array");
    if (called.number != dtype_class) {
      if (part(arguments, 0, PickleKind::global).number != ndarray)
        fail_here("an array that NumPy does not write like this");
      return push({.kind = PickleKind::array});
    }
    const PickleValue& type = part(arguments, 0, PickleKind::text);
    std::string name(std::min<std::uint64_t>(type.bytes, 8), '\0');
    input_.read_at(type.offset, std::as_writable_bytes(std::span{name}));
    if (name != "u1" && name != "|u1")
      fail_here(fmt::format("an array of type {}, not of bytes (u1)", in_quotes(name)));
    push({.kind = PickleKind::dtype});
  }

  /// The state of an array is (version, shape, type, whether it is stored by columns, content).
  void set_state() {
    const PickleValue& state = values_[pop()];
    PickleValue& target = values_[top()];
    if (target.kind == PickleKind::dtype && state.kind == PickleKind::tuple)
      return;  // of bytes, nothing but the name counts
    if (target.kind != PickleKind::array || !target.shape.empty())
      fail_here("a state of something other than an array");
    static_cast<void>(part(state, 2, PickleKind::dtype));
    const PickleValue& data = part(state, 4, PickleKind::text);
    std::uint64_t product = 1;
    const PickleValue& shape = part(state, 1, PickleKind::tuple);
    if (shape.items.size() > most_dimensions) fail_here(fmt::format("an array of {} dimensions", shape.items.size()));
    for (std::size_t i = 0; i < shape.items.size(); ++i) {
      const std::int64_t n = part(shape, i, PickleKind::number).number;
      if (n <= 0 || __builtin_mul_overflow(product, static_cast<std::uint64_t>(n), &product))
        fail_here(fmt::format("an array with a dimension of {}", n));
      target.shape.push_back(static_cast<std::uint64_t>(n));
    }
    if (product != data.bytes) fail_here(fmt::format("an array of {} bytes with {} of data", product, data.bytes));
    target.is_by_columns = part(state, 3, PickleKind::number).number != 0;
    target.offset = data.offset;
    target.bytes = data.bytes;
  }

  [[noreturn]] void fail_here(const std::string& what) const { fail(input_, step_, what); }

  const Input& input_;
  Cursor cursor_;
  std::vector<PickleValue>& values_;
  std::vector<std::uint32_t> stack_{};
  std::vector<std::size_t> marks_{};
  std::unordered_map<std::uint64_t, std::uint32_t> memo_{};
  std::uint64_t step_ = 0;  ///< where the opcode lies
};

}  // namespace

Pickle::Pickle(const Input& input) : input_{input}, root_{Machine{input_, values_}.run()} {}

const PickleValue& Pickle::at(std::string_view key, PickleValue::Kind kind) const {
  const PickleValue& root = values_[root_];
  if (root.kind != PickleKind::dictionary) fail(input_, 0, "the content is not a dictionary");
  for (std::size_t i = 0; i < root.items.size(); i += 2) {
    const PickleValue& name = values_[root.items[i]];
    if (name.kind != PickleKind::text || name.bytes != key.size() || text(name) != key) continue;
    const PickleValue& value = values_[root.items[i + 1]];
    if (value.kind != kind) fail(input_, 0, fmt::format("'{}' is of another type", key));
    return value;
  }
  fail(input_, 0, fmt::format("no '{}' in the dictionary", key));
}

std::string Pickle::text(const PickleValue& value) const {
  if (value.kind != PickleKind::text) fail(input_, 0, "a value that is not a text");
  if (value.bytes > longest_text) fail(input_, value.offset, fmt::format("a text of {} bytes", value.bytes));
  std::string text(value.bytes, '\0');
  input_.read_at(value.offset, std::as_writable_bytes(std::span{text}));
  return text;
}

}  // namespace lockstep::data
