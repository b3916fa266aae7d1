#include "checkpoint/index.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "unit/io/temporary_folder.hpp"

namespace lockstep::checkpoint {
namespace {

using core::ExitCode;
using io::expect_error;

const std::string digest = "00112233445566778899aabbccddeeff";

PieceRecord piece(const std::string& tensor, core::Slice rows) {
  return {{.tensor = tensor, .shape = {2, 6, 5}, .n_outer = 2, .n_rows = 6, .n_inner = 5, .rows = rows}, digest};
}

/// Rows of one tensor in two files, out of order, and another tensor.
Index good() {
  return {.content = R"({"mine":[1]})",
          .files = {{"rank-00000.h5", 100, digest, {piece("parameter/a", {4, 2}), piece("parameter/b", {0, 6})}},
                    {"rank-00007.h5", 100, digest, {piece("parameter/a", {0, 4})}}}};
}

TEST(Index, ComesBackAsItWasWritten) {
  const Index index = parse_index(to_text(good()), "i");
  EXPECT_EQ(to_text(index), to_text(good()));
  EXPECT_EQ(to_text(parse_file_record(to_text(good().files[0]))), to_text(good().files[0]));
}

TEST(Index, PiecesHaveEveryRowOfTheirTensorOnce) {
  struct Case {
    std::function<void(Index&)> change;
    std::string says;
  };
  const Case table[] = {
      {[](Index& i) { i.files.pop_back(); }, "files[0].pieces[0].first_row is 4"},
      {[](Index& i) { i.files[0].pieces.erase(i.files[0].pieces.begin()); },
       "files[1].pieces[0] has the last rows of parameter/a, which end at row 4\n  expected: all 6 rows"},
      {[](Index& i) {
         i.files[1].pieces[0].box.rows = {0, 5};
       },
       "files[0].pieces[0].first_row is 4\n  expected: 5"},
      {[](Index& i) {
         i.files[1].pieces[0].box.rows = {0, 3};
       },
       "files[0].pieces[0].first_row is 4\n  expected: 3"},
      {[](Index& i) {
         i.files[1].pieces[0].box.shape = {2, 5, 6};
       },
       "has a different shape, or is cut differently"},
      {[](Index& i) { i.files[1].pieces[0].box.n_rows = 5; }, "files[1].pieces[0] is cut into 2 x 5 x 5 elements"},
      {[](Index& i) {
         i.files[1].pieces[0].box.rows = {0, 7};
       },
       "files[1].pieces[0].n_rows_here is 7"},
      {[](Index& i) {
         i.files[1].pieces[0].box.rows = {0, 0};
       },
       "files[1].pieces[0].n_rows_here is 0"},
      {[](Index& i) {
         i.files[1].pieces[0].box.rows = {6, 1};
       },
       "rows of the 6, from row 6 on"},
      {[](Index& i) { i.files[1].pieces[0].box.shape = std::vector<std::uint64_t>(33, 1); }, "shape is a list"},
      {[](Index& i) { i.files[1].name = "rank-00000.h5"; }, "files[1].name repeats 'rank-00000.h5'"},
      {[](Index& i) { i.files[1].name = "rank-0.h5"; }, "files[1].name is 'rank-0.h5'"},
      {[](Index& i) { i.files[1].name = "rank-00000/../x.h5"; }, "files[1].name is 'rank-00000/../x.h5'"},
      {[](Index& i) { i.files[0].pieces[1].digest = "x"; }, "files[0].pieces[1].digest is 'x'"},
      {[](Index& i) {
         i.files[0].pieces[1].box.tensor = std::string{"a\0b", 3};
       },
       "files[0].pieces[1].tensor is 'a"},
  };
  for (const auto& [change, says] : table) {
    Index index = good();
    change(index);
    expect_error([&, &index = index] { static_cast<void>(parse_index(to_text(index), "index.json")); }, ExitCode::usage,
                 {"index.json: ", says, "expected: ", "fix: "});
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
