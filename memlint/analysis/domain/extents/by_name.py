"""The extent of a tensor by its name: weak evidence, used if layers and shapes tell nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memlint.analysis.domain.extents import extents
from memlint.analysis.domain.extents.extents import ANY, BATCH_DIM, SIDE, Extent
from memlint.patterns import lazy_pattern

#: pictures, videos, sounds, and predictions for each of their points
_PICTURES = lazy_pattern(
    r"(^|_)(im|images?|imgs?|pics?|pictures?|videos?|clips?|frames?|pixels?|voxels?|volumes?|(hr|lr|sr|rgb|seg)s?|masks?|segm\w*|"
    r"recon\w*|depths?|disp(arity)?|flows?|heat_?maps?|feature_?maps?|saliency|maps?|renders?|rendered|denoised|restored|"
    r"fakes?|spec|spectrograms?|mels?|wavs?|waveforms?|audios?)\d*(_|$)"
)
#: one row of numbers, whatever else the name says
_ROWS = lazy_pattern(
    r"(^|_)(feats?|features?|emb\w*|vecs?|vectors?|repr\w*|codes?|ids?|labels?|lbls?|scores?|loss(es)?|paths?|names?|classes|idx|index|indices|"
    r"logits?|probs?|lens?|lengths?|sizes?|shapes?|counts?|norms?|means?|acc|ious?|dice|psnrs?|ssims?)\d*(_|$)"
)
#: a vector for each token, or for each pair of tokens
_SEQUENCES = lazy_pattern(
    r"(^|_)(hidden_states?|attentions?|attn(_maps?|_weights)?|activations?)(_|$)|last_hidden_state"
)
_TOKENS = lazy_pattern(
    r"(^|_)(input_ids|token_type_ids|attention_masks?|padding_masks?|key_padding_masks?|tokens?|token_ids)(_|$)"
)
#: models that return a picture, or a number for each point of one
_DRAWS = lazy_pattern(
    r"unet|vae\d*(_|$)|(^|_)(g|netg|gen|generators?|decoders?|decode|reconstruct|render|auto_?encoders?|seg(menter|mentation|formera?)?\w*|sr|super_?res\w*|denoiser?|inpaint\w*|"
    r"diffusion|depth_?net|flow_?net|renderer?|nerf|deeplab\w*|fcn)\d*(_|$)"
)

#: methods that return a vector for each picture or text
_EMBEDS = lazy_pattern(r"get_\w+_features|encode_(image|text|audio|video|query|passage)s?|forward_head")

PICTURE = extents.shaped((BATCH_DIM, ANY, SIDE, SIDE))
_SEQUENCE = Extent(None, extents.LARGE, extents.NO_BOUND)
#: a vector for each sample: scores of classes, an embedding
_ROW = extents.shaped((BATCH_DIM, (1, 4096)))
_TOKEN = Extent(None, 1, extents.SMALL // 8, 8)


def of_name(name: str) -> Extent | None:
    """The extent by the name of a variable, a member or a key; None if the name tells nothing."""
    shown = name.lower()
    if _TOKENS.search(shown) is not None:
        return _TOKEN
    if shown in ("pooler_output", "image_embeds", "text_embeds"):
        return _ROW
    if _SEQUENCES.search(shown) is not None:
        return _SEQUENCE
    if _PICTURES.search(shown) is not None and _ROWS.search(shown) is None:
        return PICTURE
    return None


#: the extents of the outputs of library models, by the function that made the model
_OF_LIBRARIES: tuple[tuple[re.Pattern[str], Extent], ...] = (
    (
        lazy_pattern(
            r"torchvision\.models\.segmentation\.|segmentation_models_pytorch\.|diffusers\..*(UNet|Autoencoder|VAE)"
            r"|monai\.networks\.nets\.\w*(U[Nn]et|UNETR|VNet|SegResNet)"
            r"|transformers\.\w*For(\w*Segmentation|DepthEstimation|ImageToImage)"
        ),
        PICTURE,
    ),
    (
        lazy_pattern(r"transformers\.\w*(ForCausalLM|LMHead\w*|ForMaskedLM|ForConditionalGeneration|Seq2Seq)"),
        _SEQUENCE,
    ),
    (lazy_pattern(r"transformers\.\w*For(\w*Classification|MultipleChoice)(?<!TokenClassification)"), _ROW),
    (lazy_pattern(r"transformers\.\w*Model(\.|$)"), _SEQUENCE),
    (lazy_pattern(r"torchvision\.models\.([a-z]\w*\.)?[a-z]+\d|timm\.create_model|efficientnet_pytorch\."), _ROW),
    (lazy_pattern(r"lpips\.LPIPS"), extents.NUMBER),
)


def of_model(name: str, made_by: Iterable[str] = ()) -> Extent | None:
    """The extent of a model's output, by the library function that made the model, or else by its name; None for
    unknown."""
    if _EMBEDS.fullmatch(name.lower()) is not None:
        return _ROW
    for made in made_by:
        return next((extent for pattern, extent in _OF_LIBRARIES if pattern.search(made) is not None), None)
    return PICTURE if _DRAWS.search(name.lower()) is not None else None


def is_of_rows(name: str) -> bool:
    """Whether a name stands for at most a row of numbers for each sample: features, scores, labels."""
    return _ROWS.search(name.lower()) is not None


#: methods that keep the size of a tensor
_KEPT = lazy_pattern(
    r"\.(cpu|cuda|to|detach|clone|contiguous|float|half|double|data|numpy|sigmoid|softmax|log_softmax|exp)(\([^()]*\))?$"
)
_CALLEE = lazy_pattern(r"(?<!\w)(\w+)\((?:[^()]|\([^()]*\))*\)$")
_LAST = lazy_pattern(r"(?<!\w)(\w+)[\"'\])}]*$")


def named_by(text: str) -> str:
    """The name that tells what an expression is: ``image`` for ``batch["image"].cuda()``, ``decode`` for
    ``vae.decode(z)``; "" for none."""
    while (cut := _KEPT.sub("", text)) != text:
        text = cut
    found = _CALLEE.search(text) or _LAST.search(text)
    return found[1] if found is not None else ""
