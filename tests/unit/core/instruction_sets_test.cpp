#include "core/instruction_sets.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/error.hpp"

namespace lockstep::core {
namespace {

constexpr InstructionSets all{.avx2 = true, .avx512 = true, .avx512_vbmi = true};

std::string_view widest_under(std::string_view limit) { return widest(limited(all, limit).value()); }

/// Sets both variables for this test; restores them at its end.
class InstructionLimit : public testing::Test {
 protected:
  InstructionLimit() {
    for (Saved& variable : saved_)
      if (const char* const value = std::getenv(variable.name)) variable.value = value;
    set(nullptr, nullptr);
  }

  ~InstructionLimit() override {
    for (const Saved& variable : saved_) set_one(variable.name, variable.value ? variable.value->c_str() : nullptr);
  }

  void set(const char* onednn, const char* dnnl) {
    set_one(saved_[0].name, onednn);
    set_one(saved_[1].name, dnnl);
  }

 private:
  struct Saved {
    const char* name;
    std::optional<std::string> value{};
  };

  static void set_one(const char* name, const char* value) {
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }

  std::array<Saved, 2> saved_{{{"ONEDNN_MAX_CPU_ISA"}, {"DNNL_MAX_CPU_ISA"}}};
};

TEST(InstructionSets, FollowTheNamesOfOneDnn) {
  EXPECT_EQ(widest_under("SSE41"), "plain");
  EXPECT_EQ(widest_under("AVX"), "plain");  // without FMA
  for (const char* name : {"AVX2", "avx2", "AVX2_VNNI"}) EXPECT_EQ(widest_under(name), "avx2") << name;
  for (const char* name : {"AVX512_CORE", "AVX512_CORE_BF16", "AVX512_CORE_AMX", "AVX10_1_512", "ALL", "default"})
    EXPECT_EQ(widest_under(name), "avx512") << name;
  for (const char* name : {"", "AVX3", "AVX512", "AVX2 "}) EXPECT_FALSE(limited(all, name)) << name;
}

TEST(InstructionSets, ALimitTakesAwayAndNeverGives) {
  const InstructionSets old = limited({.avx2 = true}, "AVX512_CORE").value();
  EXPECT_TRUE(old.avx2);
  EXPECT_FALSE(old.avx512);
  EXPECT_FALSE(limited(all, "AVX512_CORE")->avx512_vbmi);
  EXPECT_TRUE(limited(all, "AVX512_CORE_AMX")->avx512_vbmi);
}

TEST_F(InstructionLimit, IsToldOnlyWhereThereIsOne) {
  EXPECT_EQ(instruction_limit_warning(), "");
  for (const char* none : {"", "ALL", "default"}) {
    set(none, nullptr);
    EXPECT_EQ(instruction_limit_warning(), "") << none;
  }
  set("AVX2", "SSE41");  // the first counts, as for oneDNN
  EXPECT_EQ(instruction_limit_warning().find("ONEDNN_MAX_CPU_ISA=AVX2: "), 0u);
  set("", "SSE41");
  EXPECT_EQ(instruction_limit_warning().find("DNNL_MAX_CPU_ISA=SSE41: "), 0u);
}

TEST_F(InstructionLimit, OfAnUnknownNameIsAnError) {
  EXPECT_NO_THROW(check_instruction_limit());
  set("avx2", nullptr);
  EXPECT_NO_THROW(check_instruction_limit());
  set("AVX22", nullptr);
  const auto error = complaint_of(check_instruction_limit);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ExitCode::usage);
  EXPECT_EQ(error->problem().where, "ONEDNN_MAX_CPU_ISA");
  EXPECT_NE(error->problem().fix.find("'AVX2'"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::core
