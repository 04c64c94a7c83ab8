"""What leaves the pipeline: curated sets, their cards, versions, disputed labels, formats of other trainers."""
