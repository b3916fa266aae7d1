// Which of a file's named arrays are the x and the y of which split.
// Invariant: every x has its y.
// Used by the importers of npy and HDF5.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/format/source.hpp"

namespace lockstep::data {

struct PairNames {
  std::string split;
  std::string x;
  std::string y;
};

/// For the split "train" NAME, train/NAME or NAME_train; for "val" val/NAME or NAME_val; for "test" test/NAME or
/// NAME_test, which is called "val" if there is no other. Where x and y are called so and are not there, arrays named
/// after images (or imgs) and labels are taken, such as kmnist-test-imgs and kmnist-test-labels. `has` tells what is
/// there. Throws core::Error (usage) naming `where` and `names`, the arrays there are, if there is no x, an x lacks its
/// y, or there are several of a split.
[[nodiscard]] std::vector<PairNames> find_pairs(const std::vector<std::string>& names,
                                                const std::function<bool(const std::string& name)>& has,
                                                const std::string& x_name, const std::string& y_name,
                                                const std::string& where);
/// `names` are all there are.
[[nodiscard]] std::vector<PairNames> find_pairs(const std::vector<std::string>& names, const std::string& x_name,
                                                const std::string& y_name, const std::string& where);

/// Which of `names` are in none of the pairs, and whether a test stands in for val.
[[nodiscard]] std::vector<Remark> remarks_on_names(const std::vector<std::string>& names,
                                                   const std::vector<PairNames>& pairs);

}  // namespace lockstep::data
