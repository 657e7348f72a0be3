// The driver functions that cuda_routing.driver calls, over the shim: the same signatures as cuda.h.

#include "harness.cpp"

#include <map>
#include <string>

typedef int CUresult;

static std::map<std::string, int> allowed;  // dynamic shared memory granted a kernel
static std::string cubin;
static unsigned long long last_stream;

extern "C" {

CUresult cuModuleLoadData(void** module, const void* image) {
    cubin = (const char*)image;
    *module = &cubin;
    return cubin.empty() ? 200 : 0;
}

CUresult cuModuleGetFunction(void** function, void* module, const char* name) {
    if (module != &cubin) return 400;
    for (const Named& named : KERNELS)
        if (!std::strcmp(named.name, name)) {
            *function = (void*)&named;
            allowed[name] = 48 * 1024;
            return 0;
        }
    return 500;
}

CUresult cuFuncSetAttribute(void* function, int attribute, int value) {
    if (attribute != 8) return 1;
    allowed[((Named*)function)->name] = value;
    return 0;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads,
                                                     size_t shared) {
    *blocks = function && threads > 0 && shared > 0 ? 2 : 0;
    return 0;
}

static CUresult launch(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                       unsigned by, unsigned bz, unsigned shared, void* stream, void** parameters,
                       int cooperative) {
    const char* name = ((Named*)function)->name;
    if (gy != 1 || gz != 1 || by != 1 || bz != 1 || (int)shared > allowed[name]) return 1;
    last_stream = (unsigned long long)stream;
    return shim_launch(name, (const Batch*)parameters[0], gx, bx, shared, cooperative, 0);
}

CUresult cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, void* stream, void** parameters,
                        void** extra) {
    if (extra) return 1;
    return launch(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, 0);
}

CUresult cuLaunchCooperativeKernel(void* function, unsigned gx, unsigned gy, unsigned gz,
                                   unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                   void* stream, void** parameters) {
    return launch(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, 1);
}

CUresult cuGetErrorName(CUresult error, const char** name) {
    *name = error == 500 ? "CUDA_ERROR_NOT_FOUND" : "CUDA_ERROR_INVALID_VALUE";
    return 0;
}

unsigned long long fake_last_stream() { return last_stream; }
unsigned long long fake_batch_size() { return sizeof(Batch); }
}
