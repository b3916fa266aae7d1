// What a layer says of itself: the words and facts that others ask for, and what it adds to a network.
// Invariant: follows from the layer and the shapes of its inputs alone.
// Used by the layers of nn/ops, which describe themselves, and by Network, which asks them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::nn {

/// The shape of one sample: {features}, {rows, features} (a sequence of vectors) or {channels, height, width}.
using Shape = std::vector<std::uint64_t>;
[[nodiscard]] std::uint64_t n_elements(const Shape& shape) noexcept;
/// The rows of features that a sample consists of; 1 without such a dimension.
[[nodiscard]] std::uint64_t n_sample_rows(const Shape& shape) noexcept;
/// "3x224x224".
[[nodiscard]] std::string to_string(const Shape& shape);
/// "0.25".
[[nodiscard]] std::string as_text(double number);

/// Initial distributions of a parameter; those of PyTorch's layers.
enum class Init {
  zeros,
  ones,
  uniform_fan_in,          ///< uniform in +-1/sqrt(fan_in): PyTorch's Linear and Conv, weights and biases
  kaiming_normal_fan_out,  ///< normal of variance 2/fan_out: torchvision's ResNet convolutions
  normal,                  ///< standard normal: PyTorch's Embedding
};

struct Parameter {
  std::string name;  ///< as in PyTorch's state_dict: "layer1.0.conv1.weight"
  Shape shape;       ///< as PyTorch's: {out, in}, {out, in, kernel, kernel}, {features}
  Init init = Init::zeros;
  std::uint64_t fan = 1;  ///< what `init` divides by
};

/// A running mean or variance of batch normalization.
struct Statistic {
  std::string name;  ///< "bn1.running_mean"
  std::uint64_t n_channels = 0;
  float initial = 0;
};

/// What the elements of a value are.
enum class Content { numbers, ids, log_probabilities };

/// The facts about a kind of layer that planners and other layers ask for.
struct LayerTraits {
  std::string_view word;  ///< "max_pool": what messages call it, and a node of it that has no name
  Content output = Content::numbers;
  bool is_product = false;      ///< multiplies its input by its first parameter, and may add its second
  bool is_elementwise = false;  ///< treats all elements alike, so it accepts any order of them and keeps it
};

/// What a layer adds to a network. Names of parameters and statistics are without the node's: "weight".
struct Description {
  Shape output{};
  std::vector<Parameter> parameters{};
  std::vector<Statistic> statistics{};
};

/// A value that a layer reads.
struct InputValue {
  const Shape& shape;
  Content content;
};

/// The inputs of a node while it is added. Each member throws core::Error (usage) naming the node if an input does not
/// fit.
class LayerInputs {
 public:
  LayerInputs(std::string node, std::vector<InputValue> values) : node_{std::move(node)}, values_{std::move(values)} {}

  [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
  // The shape of an input of the named kind.
  [[nodiscard]] const Shape& image(std::size_t input = 0) const;
  [[nodiscard]] const Shape& features(std::size_t input = 0) const;
  /// Features, or rows of them: the last dimension is the features of a row.
  [[nodiscard]] const Shape& rows(std::size_t input = 0) const;
  [[nodiscard]] const Shape& numbers(std::size_t input = 0) const;
  [[nodiscard]] const Shape& ids(std::size_t input = 0) const;

  /// The output {channels, height, width} of a square window that slides over the image.
  [[nodiscard]] Shape slide(std::uint64_t n_channels, std::uint64_t kernel, std::uint64_t stride,
                            std::uint64_t padding) const;

  void expect_some(std::uint64_t n, const char* of_what) const;
  [[noreturn]] void refuse(std::string what, std::string expected) const;

 private:
  std::string node_;
  std::vector<InputValue> values_;
};

}  // namespace lockstep::nn
