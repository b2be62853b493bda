// The library and the packs that this build compiles belong together: of each arch, every argument
// of the real kernels is bound, and the plan launches the code object that its report describes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "dispatcher/attn_fwd.h"
#include "dispatcher/backends.h"
#include "dispatcher/kernel_pack.h"
#include "dispatcher/pack.h"
#include "platforms/archs.h"
#include "tests/dispatch/support.h"

namespace aotriton::dispatcher {
namespace {

Tensor Make(int32_t dtype, support::Shape sizes, uintptr_t address) {
  Tensor out;
  out.data = reinterpret_cast<void*>(address);
  out.dtype = dtype;
  out.rank = 4;
  int64_t stride = 1;
  for (int i = 3; i >= 0; --i) {
    out.sizes[i] = sizes[i];
    out.strides[i] = stride;
    stride *= sizes[i];
  }
  return out;
}

AttnFwd Op(int32_t dtype, int64_t head_dim, bool is_windowed) {
  AttnFwd op;
  op.q = op.out = Make(dtype, {2, 4, 100, head_dim}, 0x10000);
  op.k = op.v = Make(dtype, {2, 2, 70, head_dim}, 0x20000);
  op.out.data = reinterpret_cast<void*>(0x30000);
  op.sm_scale = 0.125f;
  op.is_windowed = is_windowed;
  return op;
}

bool Has(const Launch& launch, const char* name) {
  for (int i = 0; i < launch.argument_count; ++i) {
    if (strcmp(launch.arguments[i].name, name) == 0) return true;
  }
  return false;
}

std::string Folder(const platforms::Arch& arch, const std::string& target) {
  return std::string("aotriton.images/") + arch.vendor + "-" + target;
}

// The packs that serve an arch: its own, of an arch of the same code, of its family.
std::string TargetOf(const platforms::Arch& arch) {
  for (const char* target : {arch.name, arch.code_of}) {
    if (access(Folder(arch, target).c_str(), F_OK) == 0) return target;
  }
  return std::string(arch.family) + "-generic";
}

TEST(RealPackTest, IsBoundAndPlannedOnEveryArch) {
  for (const platforms::Arch& arch : platforms::kArchs) {
    SCOPED_TRACE(arch.name);
    const std::string target = TargetOf(arch);
    std::shared_ptr<const Pack> packs[kKernelCount];
    std::shared_ptr<const KernelPack> bound[kKernelCount];
    for (int kernel = 0; kernel < kKernelCount; ++kernel) {
      const std::string path =
          Folder(arch, target) + "/flash/" + kKernels[kernel].name + ".pack";
      // The images of this test need not hold the other kernels.
      if (kernel != kAttnFwd && access(path.c_str(), F_OK) != 0) continue;
      Status status = Pack::Open(path, &packs[kernel]);
      ASSERT_TRUE(status.ok()) << status.text();
      status = KernelPack::Bind(packs[kernel], static_cast<KernelId>(kernel), arch.vendor, target, &bound[kernel]);
      ASSERT_TRUE(status.ok()) << status.text();
    }

    // What //tests/code_objects:images holds: aligned and any, causal and not, every dtype.
    const AttnFwd ops[] = {Op(kFloat16, 64, false), Op(kBFloat16, 128, true), Op(kBFloat16, 72, true), Op(kFloat32, 31, false)};
    for (const AttnFwd& op : ops) {
      Plan plan;
      ASSERT_TRUE(Validate(op).ok());
      Status status = PlanAttnFwd(op, *bound[kAttnFwd], nullptr, &plan);
      ASSERT_TRUE(status.ok()) << status.text();
      ASSERT_EQ(plan.launch_count, 1);
      const Launch& launch = plan.launches[0];
      const Pack& pack = *packs[kAttnFwd];
      int32_t block_m = 0;
      ASSERT_TRUE(pack.Constant(launch.variant, "BLOCK_M", &block_m));
      EXPECT_EQ(launch.grid, static_cast<uint32_t>((100 + block_m - 1) / block_m * 4 * 2));
      EXPECT_EQ(launch.threads % arch.wave_size, 0u);
      const bool is_any = op.q.sizes[3] % 16 != 0;
      EXPECT_EQ(Has(launch, "head_dim_qk"), is_any);
      EXPECT_EQ(Has(launch, "has_bias"), is_any);
      EXPECT_EQ(Has(launch, "philox_seed"), is_any);
      EXPECT_EQ(Has(launch, "window_left"), is_any || op.is_windowed);
      Bytes code;
      status = pack.LoadCode(pack.functional(launch.functional), launch.variant, &code);
      ASSERT_TRUE(status.ok()) << status.text();
      EXPECT_EQ(memcmp(code.data.get(), "\x7f" "ELF", 4), 0);
    }
  }
}

}  // namespace
}  // namespace aotriton::dispatcher
