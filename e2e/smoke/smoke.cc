// A program of somebody else's, linked against the library: it calls the forward through the v3
// API. On a machine without a GPU it expects a refusal that says so.
#include <aotriton/aotriton.h>
#include <aotriton/flash.h>

#include <cstdio>
#include <cstring>

int main() {
  std::printf("aotriton %s\n", aotriton_version());

  using aotriton::TensorView;
  alignas(16) static char nowhere[16];
  const TensorView<4> tensor(reinterpret_cast<intptr_t>(nowhere), {1, 1, 64, 64}, {4096, 4096, 64, 1},
                             aotriton::DType::kBFloat16);
  aotriton::v3::flash::attn_fwd_params params;
  params.Q = params.K = params.V = params.Out = tensor;
  params.Sm_scale = 0.125f;
  params.dropout_p = 0;
  params.philox_offset2 = 0;
  params.causal_type = aotriton::v3::flash::CausalType::None;
  const hipError_t status =
      aotriton::v3::flash::attn_fwd(params, aotriton::v3::flash::attn_fwd_params::kVersion, aotriton::Stream());
  std::printf("attn_fwd: %d %s\n", static_cast<int>(status), aotriton_last_error());
  if (status == hipErrorNoDevice) return std::strstr(aotriton_last_error(), "libamdhip64") ? 0 : 1;
  // With a GPU the bogus pointers would be used; this program only shows that it links and runs.
  return 1;
}
