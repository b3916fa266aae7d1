// The models of the shipped recipes, with the batch of a rank and facts about data sets.
// Invariant: a test of nn/cuda checks that share/recipes says the same.
// Used by tests of nn/cuda.
#pragma once

#include <vector>

#include "nn/executor.hpp"
#include "nn/graph/models.hpp"

namespace lockstep::test {

struct RecipeModel {
  const char* recipe;
  nn::ModelSpec spec;
  std::uint64_t batch;
  nn::Loss loss = nn::Loss::cross_entropy;
  std::uint64_t bn_group = 0;  ///< 0: the model has no batch normalization
};

inline std::vector<RecipeModel> recipe_models() {
  using nn::Loss;
  const nn::ModelSpec digits{.name = "mnist_cnn", .input = {1, 28, 28}, .n_outputs = 10, .takes_pixels = true};
  return {{"toy", {.name = "toy", .input = {20}, .n_outputs = 1}, 32, Loss::mse},
          {"movielens", {.name = "movielens", .n_outputs = 1, .n_ids = {943, 1682}}, 256, Loss::mse},
          {"digits", digits, 64},
          {"mnist_cnn", digits, 64},
          {"cifar_resnet18",
           {.name = "resnet18", .input = {3, 32, 32}, .n_outputs = 10, .takes_pixels = true, .cifar_stem = true},
           64,
           Loss::cross_entropy,
           16},
          {"tinyimagenet_resnet50",
           {.name = "resnet50", .input = {3, 224, 224}, .n_outputs = 200, .takes_pixels = true},
           128,
           Loss::cross_entropy,
           32},
          {"resnet50_synthetic",
           {.name = "resnet50", .input = {3, 224, 224}, .n_outputs = 1000, .takes_pixels = true},
           256,
           Loss::cross_entropy,
           32}};
}

}  // namespace lockstep::test
