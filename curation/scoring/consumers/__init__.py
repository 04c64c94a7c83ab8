"""What other trainers plug in: a class of theirs that judges by the record of a row. Only its own trainer imports each.

    verifiers      GoldilocksTaskset, a `Taskset` of verifiers 0.4; prime-rl trains on it
    skyrl          GoldilocksEnv, registered as `goldilocks` in skyrl_gym
    nemo_rl        GoldilocksEnvironment, registered as `goldilocks` in NeMo RL
    nemo_gym       GoldilocksResourcesServer, a resources server of NeMo Gym
    open_instruct  GoldilocksVerifier, a verifier of open-instruct named `goldilocks`
    roll           GoldilocksRewardWorker, a reward worker of ROLL
    tinker         GoldilocksDatasetBuilder, an `RLDatasetBuilder` of tinker-cookbook

Their packages are no dependency here. A response on which the verifier failed is worth 0 in all of them, and is told
apart in a metric where there is a place for it.
"""
