# Targets of the test cluster, included by the Makefile at the workspace's root.

TESTCLUSTER = cargo run --quiet --package testcluster --

.PHONY: cluster-up cluster-down images images-with-buildah

cluster-up: ## start a Kubernetes cluster with one node on this machine (Linux, root)
	$(TESTCLUSTER) up
	@echo 'in a shell: eval "$$($(TESTCLUSTER) env)"'

cluster-down: ## end that cluster and remove everything of it
	$(TESTCLUSTER) down

images: ## build the archives of both programs' images, without a container engine
	$(TESTCLUSTER) image operator
	$(TESTCLUSTER) image webhook

images-with-buildah: images ## put the binaries of `images` into images with the Dockerfile
	for program in operator webhook; do \
	  buildah build --isolation chroot --file images/Dockerfile --build-arg BINARIES=prebuilt --target $$program \
	    --tag kuberay-$$program:dev target/$$(uname -m)-unknown-linux-gnu/release || exit 1; \
	done
