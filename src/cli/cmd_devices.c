/* frit devices: the GPUs that the WebGPU library reaches, and the CPU. */
#include <stdio.h>

#include "cli/cli.h"
#include "kernels/cpu_isa.h"

enum { MAX_ADAPTERS = 16 };

typedef struct found {
  hw_caps gpu[MAX_ADAPTERS], cpu;
  uint32_t n;
  char why[320]; /* no GPU: why */
} found;

static err find(const char *library, found *f) {
  uint32_t n;
  *f = (found){0};
  err e = cli_list(HW_WEBGPU, library, f->gpu, MAX_ADAPTERS, &f->n);
  if (e == ERR_NO_DEVICE) snprintf(f->why, sizeof f->why, "%s", err_text());
  else if (e) return e;
  else if (!f->n) snprintf(f->why, sizeof f->why, "the WebGPU library finds no adapter");
  return cli_list(HW_CPU, NULL, &f->cpu, 1, &n);
}

static void print_gpu(const hw_caps *c, uint32_t i) {
  printf("gpu:%u  %s%s\n", i, c->name, c->software ? " (a CPU that plays GPU)" : "");
  printf("       vendor %s, architecture %s, driver %s\n", c->vendor[0] ? c->vendor : "?",
         c->arch[0] ? c->arch : "?", c->driver[0] ? c->driver : "?");
  printf("       %s through %s\n", c->api, c->library);
  printf("       features:%s", c->f16 ? " f16" : "");
  if (c->subgroups) printf(" subgroups(%u-%u)", c->subgroup_min, c->subgroup_max);
  printf("%s%s%s\n", c->dot4i8 ? " dot4i8" : "", c->timestamps ? " timestamps" : "",
         c->f16 || c->subgroups || c->dot4i8 || c->timestamps ? "" : " none");
  printf("       limits: binding %s, buffer %s, %u storage buffers, workgroup %u threads %s\n",
         cli_bytes(c->max_binding), cli_bytes(c->max_buffer), c->max_storage_buffers,
         c->max_invocations, cli_bytes(c->max_workgroup_mem));
}

static cJSON *json_gpu(const hw_caps *c, uint32_t i) {
  cJSON *j = cJSON_CreateObject(), *f, *l;
  char id[16];
  snprintf(id, sizeof id, "gpu:%u", i);
  cJSON_AddStringToObject(j, "device", id);
  cJSON_AddStringToObject(j, "name", c->name);
  cJSON_AddStringToObject(j, "vendor", c->vendor);
  cJSON_AddStringToObject(j, "architecture", c->arch);
  cJSON_AddStringToObject(j, "driver", c->driver);
  cJSON_AddStringToObject(j, "api", c->api);
  cJSON_AddStringToObject(j, "library", c->library);
  cJSON_AddBoolToObject(j, "software", c->software);
  f = cJSON_AddObjectToObject(j, "features");
  cJSON_AddBoolToObject(f, "f16", c->f16);
  cJSON_AddBoolToObject(f, "subgroups", c->subgroups);
  cJSON_AddNumberToObject(f, "subgroup_min", c->subgroup_min);
  cJSON_AddNumberToObject(f, "subgroup_max", c->subgroup_max);
  cJSON_AddBoolToObject(f, "dot4i8", c->dot4i8);
  cJSON_AddBoolToObject(f, "timestamps", c->timestamps);
  l = cJSON_AddObjectToObject(j, "limits");
  cJSON_AddNumberToObject(l, "binding", (double)c->max_binding);
  cJSON_AddNumberToObject(l, "buffer", (double)c->max_buffer);
  cJSON_AddNumberToObject(l, "storage_buffers", c->max_storage_buffers);
  cJSON_AddNumberToObject(l, "workgroups", c->max_groups);
  cJSON_AddNumberToObject(l, "invocations", c->max_invocations);
  cJSON_AddNumberToObject(l, "workgroup_memory", c->max_workgroup_mem);
  cJSON_AddNumberToObject(l, "offset_alignment", c->offset_align);
  return j;
}

static int print_json(const found *f) {
  cJSON *j = cJSON_CreateObject(), *gpus = cJSON_AddArrayToObject(j, "gpus"), *cpu;
  for (uint32_t i = 0; i < f->n; i++) cJSON_AddItemToArray(gpus, json_gpu(&f->gpu[i], i));
  if (f->n) cJSON_AddNullToObject(j, "no_gpu");
  else cJSON_AddStringToObject(j, "no_gpu", f->why);
  cpu = cJSON_AddObjectToObject(j, "cpu");
  cJSON_AddStringToObject(cpu, "device", "cpu");
  cJSON_AddStringToObject(cpu, "name", f->cpu.name);
  cJSON_AddNumberToObject(cpu, "threads", f->cpu.threads);
  cJSON_AddStringToObject(cpu, "isa", kernel_cpu_isa());
  return cli_print_json(j);
}

static int run_devices(int argc, const char **argv) {
  const char *library = NULL;
  bool json = false;
  cli_table t = {0};
  cli_args args;
  cli_add(&t, (cli_option[]){
                  {.name = "webgpu",
                   .type = CLI_TEXT,
                   .to = &library,
                   .arg = "PATH",
                   .help = "the WebGPU library (default: $FRIT_WEBGPU, then the usual places)"},
                  {.name = "json", .type = CLI_FLAG, .to = &json, .help = "prints one object"},
                  {0}});
  int status = cli_parse(&cli_devices, &t, "", argc, argv, &args);
  if (status != CLI_GO) return status;
  found f;
  if (find(library, &f)) status = cli_fail();
  else if (json) status = print_json(&f);
  else {
    for (uint32_t i = 0; i < f.n; i++) print_gpu(&f.gpu[i], i);
    if (!f.n) printf("no GPU: %s\n", f.why);
    printf("cpu    %s, %u threads, %s\n", f.cpu.name, f.cpu.threads, kernel_cpu_isa());
    status = cli_flush();
  }
  cli_args_free(&args);
  return status;
}

const cli_command cli_devices = {
    .name = "devices",
    .summary = "lists the GPUs and the CPU that models can run on",
    .synopsis = "[--webgpu=PATH] [--json]",
    .text =
        "Lists every adapter that the WebGPU library reaches, with its features and limits, and "
        "the CPU\nwith its threads and the instruction set in use. Nothing is opened. Without a "
        "WebGPU library,\nor with one that finds no GPU, it says so and lists the CPU.",
    .examples = "frit devices\nFRIT_WEBGPU=/opt/dawn/libwebgpu_dawn.so frit devices --json",
    .exit = "0 done (also without a GPU), 1 the library cannot be used",
    .run = run_devices,
};
