# The front door: each target installs what it lacks, then does its work. `make help` lists them.
PROMPT ?= Why is the sky blue? Answer in two sentences.
PREFIX ?= /usr/local
PORT ?= 8080
# Where tools/setup.sh puts a Node.js if the system's is too old.
export PATH := $(CURDIR)/.cache/node/bin:$(PATH)
# npm would leave one in /tmp.
export NODE_DISABLE_COMPILE_CACHE := 1
CCACHE := $(if $(shell command -v ccache 2>/dev/null),-DCMAKE_C_COMPILER_LAUNCHER=ccache)

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: native ## build, fetch a small chat model, watch it answer (PROMPT="...")
	@model=$$(tools/setup.sh model) && build/native/frit chat "$$model" -p "$(PROMPT)" --temp 0 --max 300 --stats

test: ## everything: CPU, both WebGPU libraries, sanitizers, CLI, browsers
	@tools/setup.sh test
	@tools/setup.sh model >/dev/null
	@tools/test.sh

check: native ## the quick tests, under a minute
	@tools/check_layers.py
	@build/native/frit-tests --quick

model: ## fetch the demo model; its path is the last line
	@tools/setup.sh model

native: ## build/native/frit, frit-tests, the library
	@tools/setup.sh build
	@cmake --preset native $(CCACHE) --log-level=WARNING >/dev/null
	@cmake --build --preset native

asan: ## the same under AddressSanitizer and UndefinedBehaviorSanitizer
msan: ## build/msan: the tests under MemorySanitizer
tsan: ## build/tsan: the tests under ThreadSanitizer
asan msan tsan:
	@tools/setup.sh $(if $(filter asan,$@),build,test)
	@cmake --preset $@ $(CCACHE) --log-level=WARNING >/dev/null
	@cmake --build --preset $@

arm: ## build/arm: the tests for 64-bit ARM, by a cross-compiler
	@tools/setup.sh build
	@cmake --preset arm $(CCACHE) --log-level=WARNING >/dev/null
	@cmake --build --preset arm

wasm: ## build/wasm: the module and JavaScript for browsers
	@tools/setup.sh wasm
	@cmake --preset wasm $(CCACHE) --log-level=WARNING >/dev/null
	@cmake --build --preset wasm
	@npm --prefix web run --silent build
	@node tools/wasm_size.mjs

package: wasm ## web/package/dist: the npm package frit
	@tools/site.sh package

site: wasm ## build/site: the chat page, with the demo model
	@tools/site.sh site

serve: ## the chat page on loopback (PORT=8080)
	@[ -e build/site/index.html ] || $(MAKE) --no-print-directory site
	@node tools/web_server.mjs $(PORT) build/site

install: ## release build into PREFIX (default /usr/local; DESTDIR is honoured)
	@tools/setup.sh build
	@cmake --preset release $(CCACHE) --log-level=WARNING >/dev/null
	@cmake --build --preset release
	@cmake --install build/release --prefix "$(PREFIX)"

format: ## clang-format over every C file
	@tools/lint.sh --fix

lint: ## clang-format and clang-tidy, changing nothing
	@tools/lint.sh --format --tidy

clean: ## remove build/ (the model and libraries stay in .cache/)
	rm -rf build

.PHONY: help demo test check model native asan msan tsan arm wasm package site serve install format lint clean
